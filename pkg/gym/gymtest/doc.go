// Package gymtest checks an environment in its author's tests:
//
//	func TestEnv(t *testing.T) { gymtest.Run(t, Env) }
//
// [Run] serves the environment in memory, in fake time, and drives it as trainers and agents do. It needs no help: it makes
// calls up from the published schemas, the same ones each time. Each check is a subtest:
//
//	compile    the environment compiles in each mode
//	doors      the same calls come to the same results, steps and rewards by every door
//	schema     what is sent and received fits what is published
//	seeds      a reset with the same seed and the same calls give the same episode, byte for byte
//	sessions   sessions side by side do not disturb each other
//	input      arguments that do not fit are refused, and the session goes on
//	ends       whatever ends a session, its value is closed once, and nothing outlives it
//	production tools work without a reset, and nobody can reset
//
// so `go test -run TestEnv/seeds` runs one. A panic in the environment fails the check that saw it, with the stack.
//
// # What is called
//
// Generated calls are polite, but they are calls: keep tools that destroy something out with [Skip]. In production mode
// the tools made by [tools.Modes] are given bad arguments only, since their variants there touch the real world;
// [CallProduction] has them called. Games that need sensible moves get them from [Script]:
//
//	gymtest.Run(t, Env, gymtest.Script(
//		gymtest.Call("open", Open{Door: "north"}),
//		gymtest.Call("look", nil),
//		gymtest.Act(Move{Row: 1, Col: 2}),
//	))
//
// # Fake time
//
// Each check runs in a bubble of [testing/synctest]: a tool that sleeps an hour costs no time, and one that never returns
// meets its deadline at once. A goroutine of the environment that waits for the real world (a process, a network) stops
// the fake clock while it waits; one that waits for ever stops the test.
package gymtest

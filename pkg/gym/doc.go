// Package gym is the environment contract: what an author writes, and what the server makes of it.
//
// An [Environment] is a literal of functions over one type E, the environment value. The server builds one value per
// session, so plain fields are the session's state:
//
//	var Env = gym.Environment[*Game]{
//		Name:  "guess",
//		New:   func(ctx context.Context, s *gym.Session) (*Game, error) { return &Game{rand: s.Rand()}, nil },
//		Tools: tools.New(tools.Func("guess", "Guess the number.", (*Game).Guess)),
//		Reset: gym.Reset((*Game).Reset),
//		After: (*Game).Score,
//	}
//
// [Environment.Compile] checks the literal and makes a [Class], which holds what all sessions share: the schemas and the
// SDK server with the tools. [Class.Open] makes an [Instance], one environment value with its episode. Above, package
// session gives instances their turns, deadlines and ends.
//
// # Steps, reward, done
//
// A tool call, by whatever door it came, is a step: After gives its reward and says whether the episode is over. An
// environment with an action type of its own names it with [Act]; that function returns reward and end itself. Steps
// after the end are answered, and the episode stays over until the next reset.
//
// # Concurrency
//
// A Class may be used concurrently. The calls that touch an environment value (every method of [Instance] whose comment
// says "in the session's turn") must not overlap; its counters may be read at any time.
package gym

package sandbox

// What the kernel lets a child have beside what it begins with. Growth is bounded by RLIMIT_DATA, save the step that crosses
// it: to the kernel, making part of a reserved range usable is no growth. Go's runtime reserves ranges by whole arenas, so
// RLIMIT_AS bounds that step, and with it all.

const (
	arena = 64 << 20 * shadow
	notes = 8 << 20 // what the runtime keeps of its arenas
)

// dataRoom leaves room above the bound for what is no value: what the runtime knows of them, and gaps between them.
func dataRoom(memory int64) uint64 { return uint64(memory*shadow) * 9 / 8 }

func addressRoom(memory int64) uint64 {
	m := uint64(memory) * shadow
	return (m+arena-1)/arena*arena + m/16 + notes
}

// ceiling is the most that a child can take for an instant. It begins within an arena, so it may have one more than it is
// let reserve.
func ceiling(memory int64) int64 { return int64(addressRoom(memory)) + arena }

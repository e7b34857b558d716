package gym

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// A Reward is what a step earned: a number, a boolean, or nothing. The zero Reward is nothing, null on the wire.
type Reward struct {
	kind  rewardKind
	value float64 // for a boolean: 0 or 1
}

type rewardKind byte

const (
	rewardNone rewardKind = iota
	rewardNumber
	rewardBool
)

// Number is a numeric reward. It must be finite: NaN and infinities are not JSON, and an After that returns one has
// failed.
func Number(v float64) Reward { return Reward{rewardNumber, v} }

// Bool is a boolean reward; it counts as 1 or 0 in totals.
func Bool(v bool) Reward {
	if v {
		return Reward{rewardBool, 1}
	}
	return Reward{rewardBool, 0}
}

// Value is the reward as a number, 0 for none; ok reports whether there is one.
func (r Reward) Value() (v float64, ok bool) { return r.value, r.kind != rewardNone }

// MarshalJSON writes a number, true, false or null.
func (r Reward) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil) }

// AppendJSON appends what MarshalJSON writes.
func (r Reward) AppendJSON(b []byte) ([]byte, error) {
	switch size := math.Abs(r.value); {
	case r.kind == rewardNone:
		return append(b, "null"...), nil
	case r.kind == rewardBool:
		return strconv.AppendBool(b, r.value == 1), nil
	case size == 0 || 1e-6 <= size && size < 1e21: // where encoding/json has no exponent
		return strconv.AppendFloat(b, r.value, 'f', -1, 64), nil
	}
	raw, err := json.Marshal(r.value)
	return append(b, raw...), err
}

func (r Reward) check() error {
	if math.IsNaN(r.value) || math.IsInf(r.value, 0) {
		return fmt.Errorf("the reward is %v; it must be a finite number", r.value)
	}
	return nil
}

// A Score is the outcome of one step for the trainer. Agents never see it.
type Score struct {
	Reward Reward
	Done   bool // the episode is over; it stays over whatever later steps say
}

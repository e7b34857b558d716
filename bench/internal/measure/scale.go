package measure

import (
	"context"
	"fmt"

	"github.com/openenv-go/openenv-go/bench/internal/report"
	"github.com/openenv-go/openenv-go/bench/internal/scale"
)

// Scale runs experiments with many sessions at once.
func (b *Bench) Scale(ctx context.Context, all []scale.Settings) (out []report.Scale, err error) {
	for _, s := range all {
		b.logf("%d sessions at once, steps of %v", s.Sessions, s.Wait)
		one, err := scale.Run(ctx, s, b.programs[report.Ours].args)
		if err != nil {
			return nil, fmt.Errorf("%d sessions: %w", s.Sessions, err)
		}
		out = append(out, one)
	}
	return out, nil
}

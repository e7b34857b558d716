package measure

import (
	"context"
	"time"

	"github.com/openenv-go/openenv-go/bench/internal/report"
)

// ScaleSettings say how large an experiment with many sessions at once is.
type ScaleSettings struct {
	Sessions int
	Wait     time.Duration // of the step
}

// Scale runs such experiments.
func (b *Bench) Scale(ctx context.Context, all []ScaleSettings) (out []report.Scale, err error) {
	return nil, nil
}

package report

import (
	"fmt"
	"image/color"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A chart is lines of servers over sessions or sizes, both axes logarithmic.
type chart struct {
	file, title, x, y string
	lines             []line
	ticks             []plot.Tick // of the x axis
}

type line struct {
	server string
	points plotter.XYs
}

// charts are those for which there are results.
func charts(r Results) (all []chart) {
	for _, c := range []chart{
		overSessions(r, "steps", "Steps over /ws, texts of 32 bytes", "steps per second", perSecond),
		overSessions(r, "cpu", "Server CPU per step over /ws, texts of 32 bytes", "microseconds", func(r Round) float64 { return cost(r) / 1e3 }),
		overSessions(r, "p99", "99th percentile of steps over /ws, texts of 32 bytes", "milliseconds", func(r Round) float64 { return p99(r) / 1e6 }),
		overSizes(r, "sizes", "Server CPU per step over /ws, 64 sessions", "ws-step", barSessions),
		overSizes(r, "streamable", "Server CPU per call over Streamable HTTP, 64 sessions", "streamable", barSessions),
	} {
		if len(c.lines) > 0 && len(c.lines[0].points) > 1 {
			all = append(all, c)
		}
	}
	return all
}

func overSessions(r Results, file, title, y string, f func(Round) float64) chart {
	c := chart{file: file, title: title, x: "sessions", y: y}
	for _, s := range r.Steps {
		if s.Door == "ws-step" && s.Size == barSize && s.Failure == "" {
			c.add(s.Server, float64(s.Sessions), number(float64(s.Sessions)), over(s.Rounds, f))
		}
	}
	return c
}

func overSizes(r Results, file, title, door string, sessions int) chart {
	c := chart{file: file, title: title, x: "size of the text", y: "microseconds"}
	for _, s := range r.Steps {
		if s.Door == door && s.Sessions == sessions && s.Failure == "" {
			c.add(s.Server, float64(s.Size), size(int64(s.Size)), over(s.Rounds, func(r Round) float64 { return cost(r) / 1e3 }))
		}
	}
	return c
}

func (c *chart) add(server string, x float64, label string, y float64) {
	i := slices.IndexFunc(c.lines, func(l line) bool { return l.server == server })
	if i < 0 {
		i = len(c.lines)
		c.lines = append(c.lines, line{server: server})
	}
	c.lines[i].points = append(c.lines[i].points, plotter.XY{X: x, Y: y})
	if !slices.ContainsFunc(c.ticks, func(t plot.Tick) bool { return t.Value == x }) {
		c.ticks = append(c.ticks, plot.Tick{Value: x, Label: label})
	}
}

// colours of the servers, told apart by most eyes.
var colours = map[string]color.Color{
	Ours:      color.RGBA{0x00, 0x72, 0xb2, 0xff},
	Reference: color.RGBA{0xd5, 0x5e, 0x00, 0xff},
	Floor:     color.RGBA{0x80, 0x80, 0x80, 0xff},
	HTTPEcho:  color.RGBA{0x40, 0x40, 0x40, 0xff},
	MCPGo:     color.RGBA{0x00, 0x9e, 0x73, 0xff},
	GoSDK:     color.RGBA{0xcc, 0x79, 0xa7, 0xff},
}

const (
	plotWidth  = 16 * vg.Centimeter
	plotHeight = 10 * vg.Centimeter
	margin     = 1.6 // beside the first and the last point, as a factor; their labels need it
	legendRoom = 20  // above the highest, likewise
)

// draw writes the chart as an SVG file.
func (c chart) draw(dir string) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.title, c.x, c.y
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.ConstantTicks(c.ticks), decades{}
	// On the left the names come after their samples, and run into nothing where a reader's font is wider than ours.
	p.Legend.Top, p.Legend.Left, p.Legend.XOffs, p.Legend.Padding = true, true, 2*vg.Millimeter, vg.Millimeter
	p.Legend.ThumbnailWidth = 8 * vg.Millimeter
	p.Add(plotter.NewGrid())
	for _, l := range c.lines {
		pl, points, err := plotter.NewLinePoints(l.points)
		if err != nil {
			return fmt.Errorf("%s: %w", c.file, err)
		}
		pl.Color, pl.Width = colours[l.server], vg.Points(1.5)
		points.Color, points.Shape = colours[l.server], draw.CircleGlyph{}
		p.Add(pl, points)
		p.Legend.Add(l.server, pl, points)
	}
	p.X.Min, p.X.Max, p.Y.Max = p.X.Min/margin, p.X.Max*margin, p.Y.Max*legendRoom
	return p.Save(plotWidth, plotHeight, filepath.Join(dir, c.file+".svg"))
}

// decades are ticks at 1, 10, 100 and so on.
type decades struct{}

// Ticks returns those from the least to the greatest value.
func (decades) Ticks(least, greatest float64) (all []plot.Tick) {
	for v := 1e-3; v <= 1e9; v *= 10 {
		if v >= least*0.999 && v <= greatest*1.001 {
			all = append(all, plot.Tick{Value: v, Label: number(v)})
		}
		for minor := 2.0; minor < 10; minor++ {
			if m := v * minor; m >= least && m <= greatest {
				all = append(all, plot.Tick{Value: m})
			}
		}
	}
	return all
}

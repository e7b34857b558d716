package codemodetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// data is what harbour.json holds. Numbers that a float would round stay as they are spelled.
type data struct {
	Vessels  []*vessel                  `json:"vessels"`
	Berths   []*berth                   `json:"berths"`
	Tides    []float64                  `json:"tides"`
	Notes    []note                     `json:"notes"`
	Invoices []invoice                  `json:"invoices"`
	Ledger   json.RawMessage            `json:"ledger"`
	Weather  map[string][]string        `json:"weather"`
	Depths   map[string]json.RawMessage `json:"depths"`
	Settings map[string]json.RawMessage `json:"settings"`
}

type vessel struct {
	ID       int             `json:"id"`
	Name     string          `json:"name"`
	Flag     string          `json:"flag"`
	Draft    float64         `json:"draft_m"`
	Status   string          `json:"status"`
	ETA      *string         `json:"eta"`
	Registry json.Number     `json:"registry"`
	Captain  json.RawMessage `json:"captain"`
	Cargo    json.RawMessage `json:"cargo"`
	Tags     []string        `json:"tags"`
}

type berth struct {
	Number int     `json:"number"`
	Depth  float64 `json:"depth_m"`
	Vessel *int    `json:"vessel_id"`
}

type note struct {
	ID     string `json:"id"`
	Author string `json:"author"`
	At     string `json:"at"`
	Text   string `json:"text"`
}

type invoice struct {
	Number   string      `json:"number"`
	Vessel   int         `json:"vessel_id"`
	Amount   json.Number `json:"amount"`
	Currency string      `json:"currency"`
	Issued   string      `json:"issued"`
	Paid     bool        `json:"paid"`
}

type object = map[string]any

// answer runs a tool whose arguments fit its schema.
func (h *Harbour) answer(ctx context.Context, tool string, args json.RawMessage) (json.RawMessage, error) {
	if tool == "sonar_sweep" { // which waits: not while the data is locked
		return marshal(h.sonarSweep(ctx, args))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return marshal(h.run(tool, args))
}

func marshal(v any, err error) (json.RawMessage, error) {
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

func (h *Harbour) run(tool string, args json.RawMessage) (any, error) {
	switch tool {
	case "list_vessels":
		return call(args, vesselsIn{Limit: 3}, h.data.listVessels)
	case "get_vessel":
		return call(args, vesselIn{}, h.data.getVessel)
	case "list_berths":
		return h.data.Berths, nil
	case "tide":
		return call(args, tideIn{}, func(in tideIn) (any, error) { return h.data.Tides[int(in.Hour)], nil })
	case "search-notes":
		return call(args, notesIn{Page: 1, Size: 2}, h.data.searchNotes)
	case "assign_berth":
		return call(args, assignIn{}, h.data.assignBerth)
	case "send_message":
		return call(args, messageIn{}, sendMessage)
	case "weather_report":
		return call(args, weatherIn{Days: 1, Units: "metric"}, func(in weatherIn) (any, error) {
			return strings.Join(h.data.Weather[in.Units][:int(in.Days)], "\n"), nil
		})
	case "list_invoices":
		return call(args, invoicesIn{}, h.data.listInvoices)
	case "ledger_totals":
		return h.data.Ledger, nil
	case "radio_check":
		return call(args, radioIn{}, radioCheck)
	case "get_settings":
		return call(args, settingsIn{Profile: "default"}, h.data.getSettings)
	case "import":
		return call(args, manifestIn{}, importManifest)
	}
	return nil, fmt.Errorf("the harbour has a schema of %s, but no tool", tool)
}

// call decodes the arguments over the defaults.
func call[In any](args json.RawMessage, in In, f func(In) (any, error)) (any, error) {
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, err
	}
	return f(in)
}

// A whole is an integer that may be spelled as a float.
type whole int

func (w *whole) UnmarshalJSON(b []byte) error {
	f, err := strconv.ParseFloat(string(b), 64)
	*w = whole(f)
	return err
}

type vesselsIn struct {
	Cursor *string `json:"cursor"`
	Limit  whole   `json:"limit"`
}

func (d *data) listVessels(in vesselsIn) (any, error) {
	from := 0
	if in.Cursor != nil {
		from = -1
		for i, v := range d.Vessels {
			if *in.Cursor == fmt.Sprintf("after-%d", v.ID) {
				from = i + 1
			}
		}
		if from < 0 {
			return nil, fmt.Errorf("unknown cursor %q: pass the next_cursor of the page before", *in.Cursor)
		}
	}
	to := min(from+int(in.Limit), len(d.Vessels))
	page := []object{}
	for _, v := range d.Vessels[from:to] {
		page = append(page, object{"id": v.ID, "name": v.Name, "flag": v.Flag, "draft_m": v.Draft, "status": v.Status})
	}
	var next any
	if to < len(d.Vessels) {
		next = fmt.Sprintf("after-%d", d.Vessels[to-1].ID)
	}
	return object{"vessels": page, "next_cursor": next}, nil
}

type vesselIn struct {
	ID json.Number `json:"id"`
}

func (d *data) vessel(id json.Number) (*vessel, error) {
	f, err := id.Float64()
	for _, v := range d.Vessels {
		if err == nil && float64(v.ID) == f {
			return v, nil
		}
	}
	return nil, fmt.Errorf("no vessel %s: list_vessels has the ids", id)
}

func (d *data) getVessel(in vesselIn) (any, error) { return d.vessel(in.ID) }

type tideIn struct {
	Hour whole `json:"hour"`
}

type notesIn struct {
	Query string `json:"query"`
	Page  whole  `json:"page"`
	Size  whole  `json:"page_size"`
}

func (d *data) searchNotes(in notesIn) (any, error) {
	found := []note{}
	for _, n := range d.Notes {
		if strings.Contains(strings.ToLower(n.Text), strings.ToLower(in.Query)) {
			found = append(found, n)
		}
	}
	size := int(in.Size)
	from := min((int(in.Page)-1)*size, len(found))
	return object{
		"notes": found[from:min(from+size, len(found))], "page": int(in.Page), "pages": (len(found) + size - 1) / size, "total": len(found),
	}, nil
}

type assignIn struct {
	Vessel json.Number `json:"vessel_id"`
	Berth  whole       `json:"berth"`
	Force  bool        `json:"force"`
}

func (d *data) assignBerth(in assignIn) (any, error) {
	v, err := d.vessel(in.Vessel)
	if err != nil {
		return nil, err
	}
	var to *berth
	for _, b := range d.Berths {
		if b.Number == int(in.Berth) {
			to = b
		}
	}
	switch {
	case to == nil:
		return nil, fmt.Errorf("no berth %d: list_berths has the numbers", in.Berth)
	case to.Depth < v.Draft:
		return nil, fmt.Errorf("berth %d is %v m deep, too shallow for a draft of %v m", to.Number, to.Depth, v.Draft)
	case to.Vessel != nil && *to.Vessel != v.ID && !in.Force:
		return nil, fmt.Errorf("berth %d is taken by vessel %d: choose a free one, or force", to.Number, *to.Vessel)
	}
	var moved *int
	for _, b := range d.Berths {
		if b.Vessel != nil && *b.Vessel == v.ID {
			b.Vessel = nil
		}
	}
	if moved = to.Vessel; moved != nil {
		for _, other := range d.Vessels {
			if other.ID == *moved {
				other.Status = "waiting"
			}
		}
	}
	id := v.ID
	to.Vessel, v.Status = &id, "moored"
	return object{"vessel_id": v.ID, "berth": to.Number, "fee": 40.5 + float64(to.Number), "moved": moved}, nil
}

type messageIn struct {
	To string `json:"to"`
}

func sendMessage(in messageIn) (any, error) {
	if !strings.Contains(in.To, "@") {
		return nil, fmt.Errorf("%q is no address: it has no @", in.To)
	}
	return nil, nil
}

type weatherIn struct {
	Days  whole  `json:"days"`
	Units string `json:"units"`
}

type invoicesIn struct {
	From string  `json:"from"`
	To   *string `json:"to"`
	Paid *bool   `json:"paid"`
}

func (d *data) listInvoices(in invoicesIn) (any, error) {
	found := []invoice{}
	for _, i := range d.Invoices {
		if i.Issued >= in.From && (in.To == nil || i.Issued <= *in.To) && (in.Paid == nil || i.Paid == *in.Paid) {
			found = append(found, i)
		}
	}
	return found, nil
}

type radioIn struct {
	Channel whole `json:"channel"`
}

func radioCheck(in radioIn) (any, error) {
	switch in.Channel {
	case 12:
		return "Blue Heron: readable", nil
	case 14:
		return "silence", nil
	case 16:
		return "coastguard: loud and clear", nil
	}
	return nil, errBroken{fmt.Errorf("receiver: no carrier on channel %d", in.Channel)}
}

type sonarIn struct {
	Sector     whole  `json:"sector"`
	Resolution string `json:"resolution"`
}

func (h *Harbour) sonarSweep(ctx context.Context, args json.RawMessage) (any, error) {
	return call(args, sonarIn{Resolution: "coarse"}, func(in sonarIn) (any, error) {
		if in.Resolution == "fine" {
			ctx, cancel := ctx, context.CancelFunc(func() {})
			if h.Patience > 0 {
				ctx, cancel = context.WithTimeout(ctx, h.Patience)
			}
			defer cancel()
			timer := time.NewTimer(time.Minute)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return object{"sector": int(in.Sector), "depths": h.data.Depths[strconv.Itoa(int(in.Sector))]}, nil
	})
}

type settingsIn struct {
	Profile string `json:"profile"`
}

func (d *data) getSettings(in settingsIn) (any, error) {
	s, ok := d.Settings[in.Profile]
	if !ok {
		return nil, fmt.Errorf("no profile %q: there are default, harbour and night", in.Profile)
	}
	return s, nil
}

type manifestIn struct {
	Manifest string `json:"manifest"`
}

var cargoLine = regexp.MustCompile(`^[A-Z]+ ([0-9]+)$`)

func importManifest(in manifestIn) (any, error) {
	if strings.TrimSpace(in.Manifest) == "" {
		return nil, errors.New("the manifest is empty")
	}
	lines, skipped, kg := 0, 0, 0
	for _, line := range strings.Split(in.Manifest, "\n") {
		m := cargoLine.FindStringSubmatch(line)
		if m == nil {
			skipped++
			continue
		}
		n, err := strconv.Atoi(m[1])
		if err != nil {
			return nil, err
		}
		lines++
		kg += n
	}
	return object{"lines": lines, "skipped": skipped, "kg": kg}, nil
}

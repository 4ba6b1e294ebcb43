// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package probe

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// clock is a moment that a test moves.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestRhythm(t *testing.T) {
	t.Parallel()
	at := func(s float64) time.Time { return epoch.Add(time.Duration(s * float64(time.Second))) }
	for _, test := range []struct {
		name             string
		changed          float64 // seconds; < 0: never
		now              float64
		pending, refused bool
		want             time.Duration
	}{
		{"settled", -1, 0, false, false, 15 * time.Second},
		{"pending", -1, 0, true, false, time.Second},
		{"just changed", 0, 0, true, false, 250 * time.Millisecond},
		{"settled within two minutes of a change", 0, 119.9, false, false, 250 * time.Millisecond},
		{"two minutes later, pending", 0, 120, true, false, time.Second},
		{"two minutes later, settled", 0, 120, false, false, 15 * time.Second},
		{"credentials refused, whatever else", 0, 1, true, true, 15 * time.Second},
	} {
		var r rhythm
		if test.changed >= 0 {
			r.changed(at(test.changed))
		}
		require.Equal(t, test.want, r.interval(at(test.now), test.pending, test.refused), test.name)
	}
}

// notices runs a pacer over a script and returns at which milliseconds it
// sent a notice. items gives what differs at a moment; news the moments at
// which an order says something new.
func notices(until time.Duration, items func(ms int) string, news func(ms int) bool, fails func(ms int) bool) []int {
	var p pacer
	var sent []int
	for ms := 0; ms <= int(until.Milliseconds()); ms += 10 {
		now := epoch.Add(time.Duration(ms) * time.Millisecond)
		if news != nil && news(ms) {
			p.news()
		}
		var list []item
		for _, name := range strings.Fields(items(ms)) {
			key, fast := strings.CutPrefix(name, "!")
			list = append(list, item{key: key, fast: fast})
		}
		due := p.next(now, list)
		if due.IsZero() || due.After(now) {
			continue
		}
		if fails != nil && fails(ms) {
			p.missed(now)
			continue
		}
		p.notified(now, list)
		sent = append(sent, ms)
	}
	return sent
}

func TestPacer(t *testing.T) {
	t.Parallel()
	always := func(text string) func(int) string { return func(int) string { return text } }
	for _, test := range []struct {
		name  string
		until time.Duration
		items func(ms int) string
		news  func(ms int) bool
		fails func(ms int) bool
		want  []int
	}{
		{name: "nothing differs", until: time.Hour / 4, items: always("")},
		{name: "an address answers; no hook comes", until: 4 * time.Minute, items: always("!answers"),
			want: []int{50, 5050, 15050, 35050, 75050, 135050, 195050}},
		{name: "something else; no hook comes", until: time.Minute, items: always("service"),
			want: []int{0, 5000, 15000, 35000}},
		{name: "what comes together is told together", until: time.Second, items: func(ms int) string {
			switch {
			case ms < 20:
				return "!rw"
			case ms < 600:
				return "!rw !ro"
			}
			return "!rw !ro !more"
		}, want: []int{50, 650}},
		{name: "one answer after the other, 250 ms apart", until: time.Second, items: func(ms int) string {
			var all []string
			for i := 0; i <= ms/100; i++ {
				all = append(all, fmt.Sprintf("!a%d", i))
			}
			return strings.Join(all, " ")
		}, want: []int{50, 300, 550, 800}},
		{name: "an answer after slow things is fast again", until: 10 * time.Second, items: func(ms int) string {
			if ms >= 7000 {
				return "service !answers"
			}
			return "service"
		}, want: []int{0, 5000, 7050}},
		{name: "slow things: three at once, then one in 5 s", until: 22 * time.Second, items: func(ms int) string {
			return fmt.Sprintf("change-%d", ms/500)
		}, want: []int{0, 500, 1000, 5000, 10000, 15000, 20000}},
		{name: "slow things: three again after a rest", until: 62 * time.Second, items: func(ms int) string {
			if ms < 1500 || ms >= 60000 {
				return fmt.Sprintf("change-%d", ms/500)
			}
			return ""
		}, want: []int{0, 500, 1000, 60000, 60500, 61000}},
		{name: "hooks report something new each time", until: 11 * time.Second,
			items: always("!answers"), news: func(ms int) bool { return ms%1000 == 0 },
			want: []int{50, 1050, 2050, 3050, 4050, 5050, 6050, 7050, 8050, 9050, 10050}},
		{name: "an address that answers every other time while hooks report the same", until: 2 * time.Minute,
			items: func(ms int) string {
				if ms/250%2 == 0 {
					return "!answers"
				}
				return ""
			}, want: []int{50, 5050, 15050, 35050, 75050}},
		{name: "Pebble is not there, then it is", until: 40 * time.Second, items: always("!answers"),
			fails: func(ms int) bool { return ms < 10000 }, want: []int{15050, 20050, 30050}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, notices(test.until, test.items, test.news, test.fails))
		})
	}
}

// An address that flaps, and hooks that each report what they happen to see:
// the notices stay bounded.
func TestPacer_FlappingAndHooksThatBelieveIt(t *testing.T) {
	t.Parallel()
	var p pacer
	ordered, count := true, 0
	for ms := 0; ms < 10*60*1000; ms += 10 {
		now := epoch.Add(time.Duration(ms) * time.Millisecond)
		answers := ms/1000%2 == 0
		var items []item
		if answers != ordered {
			items = []item{{key: fmt.Sprint(answers), fast: answers}}
		}
		if due := p.next(now, items); !due.IsZero() && !due.After(now) {
			p.notified(now, items)
			count++
			ordered = answers
			p.news()
		}
	}
	require.LessOrEqual(t, count, 2*(600/5)+6)
}

func TestOrder_IsNews(t *testing.T) {
	t.Parallel()
	base := Order{Build: "b", WakeAt: epoch, Login: Login{Username: "u", Password: "p"}}
	for name, test := range map[string]struct {
		change func(*Order)
		want   bool
	}{
		"nothing":                         {func(*Order) {}, false},
		"woken a little later":            {func(o *Order) { o.WakeAt = epoch.Add(4 * time.Second) }, false},
		"woken a little earlier":          {func(o *Order) { o.WakeAt = epoch.Add(-4 * time.Second) }, false},
		"woken much later":                {func(o *Order) { o.WakeAt = epoch.Add(5 * time.Second) }, true},
		"not woken":                       {func(o *Order) { o.WakeAt = time.Time{} }, true},
		"an address answers":              {func(o *Order) { o.Seen.Answers = map[string]bool{"a": true} }, true},
		"plain credentials":               {func(o *Order) { o.Login.Password = "q" }, true},
		"pending":                         {func(o *Order) { o.Pending = true }, true},
		"the same answers by another map": {func(o *Order) { o.Seen.Answers = map[string]bool{} }, false},
	} {
		o := base
		test.change(&o)
		require.Equal(t, test.want, o.isNews(base), name)
	}
	secret := Order{SecretID: "secret:1", SecretRevision: 1, Login: Login{Password: "p"}}
	other := secret
	other.Login.Password = "q"
	require.Equal(t, secret.Digest(), other.Digest(), "the revision stands for the password")
	other.SecretRevision = 2
	require.NotEqual(t, secret.Digest(), other.Digest())
}

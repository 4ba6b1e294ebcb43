// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package probe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// hole never answers and obeys its deadline; abyss does not even do that.
func hole(ctx context.Context, _ string) error {
	<-ctx.Done()
	return fmt.Errorf("cannot dial: %w", ctx.Err())
}

func TestCheck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		forever := make(chan struct{})
		session := func(ctx context.Context, address string) error {
			switch address {
			case "good":
				time.Sleep(time.Millisecond)
				return nil
			case "refuses":
				return errors.New("connection\nrefused")
			case "abyss":
				<-forever
				return nil
			}
			return hole(ctx, address)
		}
		begin := time.Now()
		verdicts := Check(t.Context(), session, []string{"hole", "good", "abyss", "refuses", "good"}, Budget)
		require.Equal(t, Budget, time.Since(begin))
		require.Equal(t, []Verdict{
			{Address: "hole", Reason: "timed out after 3s", TimedOut: true, Took: Budget},
			{Address: "good", OK: true, Took: time.Millisecond},
			{Address: "abyss", Reason: "timed out after 3s", TimedOut: true, Took: Budget},
			{Address: "refuses", Reason: "connection refused"},
			{Address: "good", OK: true, Took: time.Millisecond},
		}, verdicts)
		close(forever)
	})
}

// What is left out for its silence reads as if it had been tried, so that no status flips.
func TestCheck_Hangs(t *testing.T) {
	t.Parallel()
	hangs := func(context.Context, string) error { return ErrHangs }
	verdict := Check(t.Context(), hangs, []string{"a"}, Budget)[0]
	require.Equal(t, "timed out after 3s", verdict.Reason)
	require.True(t, verdict.TimedOut)
	require.Less(t, verdict.Took, Budget)
}

func TestCheck_BackWhenAllHaveAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		Check(t.Context(), func(context.Context, string) error { time.Sleep(time.Second); return nil }, []string{"a", "b"}, Budget)
		require.Equal(t, time.Second, time.Since(begin))
		require.Empty(t, Check(t.Context(), nil, nil, Budget))
	})
}

// However many addresses swallow packets, those that answer get their turn and
// the budget holds; and never too many sessions are open at once.
func TestCheck_BlackHoles(t *testing.T) {
	t.Parallel()
	for _, holes := range []int{20, 500} {
		synctest.Test(t, func(t *testing.T) {
			var open, most atomic.Int64
			session := func(ctx context.Context, address string) error {
				if n := open.Add(1); n > most.Load() {
					most.Store(n)
				}
				defer open.Add(-1)
				if address == "good" {
					return nil
				}
				return hole(ctx, address)
			}
			var addresses []string
			for i := range holes {
				addresses = append(addresses, fmt.Sprintf("hole-%d", i))
			}
			begin := time.Now()
			verdicts := Check(t.Context(), session, append(addresses, "good"), Budget)
			require.LessOrEqual(t, time.Since(begin), Budget)
			require.True(t, verdicts[holes].OK)
			require.LessOrEqual(t, most.Load(), int64(mostAtOnce))
			require.Contains(t, verdicts[0].Reason, "timed out after ")
		})
	}
}

func TestCheck_Interrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		v := Check(ctx, hole, []string{"a"}, Budget)
		require.Equal(t, time.Second, time.Since(begin))
		require.False(t, v[0].OK)
		require.NotEmpty(t, v[0].Reason)
	})
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

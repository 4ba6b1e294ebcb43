// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package tour

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// proberUnderTest runs a prober whose sessions are answered by s; send gives it an order, next the next line it writes.
func proberUnderTest(t *testing.T, s session) (send func(string), next func() ProbeLine) {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := newProber(outW, s).run(t.Context(), inR)
		outW.Close()
		done <- err
	}()
	lines := bufio.NewScanner(outR)
	t.Cleanup(func() {
		inW.Close()
		outR.Close()
		require.NoError(t, <-done)
	})
	send = func(line string) {
		_, err := io.WriteString(inW, line+"\n")
		require.NoError(t, err)
	}
	next = func() ProbeLine {
		require.True(t, lines.Scan(), "no line from the prober: %v", lines.Err())
		var l ProbeLine
		require.NoError(t, json.Unmarshal(lines.Bytes(), &l))
		return l
	}
	return send, next
}

func TestLoginProbe_FirstAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		answersAt := begin.Add(8 * time.Second)
		var logins atomic.Int64
		send, next := proberUnderTest(t, func(_ context.Context, l Login, _ string, _ time.Duration) error {
			logins.Add(1)
			if l.Password != "pw" {
				return errors.New("wrong password")
			}
			if time.Now().Before(answersAt) {
				return errors.New("silent")
			}
			return nil
		})
		send(`{"username":"u","password":"pw","addresses":["10.0.0.1:6446"]}`)
		first := next()
		require.Equal(t, ProbeLine{Address: "10.0.0.1:6446", At: begin.UnixNano(), Reason: "silent"}, first)
		answer := next()
		require.True(t, answer.OK)
		require.True(t, answer.First)
		late := time.Duration(answer.At - answersAt.UnixNano())
		require.GreaterOrEqual(t, late, time.Duration(0))
		require.LessOrEqual(t, late, ProbeInterval)
		require.GreaterOrEqual(t, logins.Load(), int64(8*time.Second/ProbeInterval))
	})
}

func TestLoginProbe_HangingAttemptsDoNotDelayTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		answersAt := begin.Add(3 * time.Second)
		send, next := proberUnderTest(t, func(ctx context.Context, _ Login, _ string, timeout time.Duration) error {
			if time.Now().Before(answersAt) { // a packet that is dropped: nothing comes back
				ctx, cancel := context.WithTimeout(ctx, timeout)
				defer cancel()
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		send(`{"username":"u","password":"pw","addresses":["a:1"]}`)
		require.Equal(t, "timed out", next().Reason)
		answer := next()
		require.True(t, answer.First)
		require.LessOrEqual(t, time.Duration(answer.At-answersAt.UnixNano()), ProbeInterval)
	})
}

func TestLoginProbe_NamedAgainBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		send, next := proberUnderTest(t, func(context.Context, Login, string, time.Duration) error { return nil })
		send(`{"username":"u","password":"pw","addresses":["a:1"]}`)
		require.True(t, next().First)
		time.Sleep(5 * time.Second)
		again := time.Now()
		send(`{"addresses":["a:1"]}`)
		line := next()
		require.True(t, line.First)
		require.Equal(t, again.UnixNano(), line.At)
	})
}

func TestLoginProbe_OrderWithoutLogin(t *testing.T) {
	t.Parallel()
	inR, inW := io.Pipe()
	go io.WriteString(inW, `{"addresses":["a:1"]}`+"\n")
	err := LoginProbe(t.Context(), inR, io.Discard)
	require.EqualError(t, err, "cannot probe: the first order has no login")
}

func TestLoginProbe_DroppedAddressIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logins atomic.Int64
		send, next := proberUnderTest(t, func(_ context.Context, _ Login, address string, _ time.Duration) error {
			if address == "a:1" {
				logins.Add(1)
			}
			return nil
		})
		send(`{"username":"u","password":"pw","addresses":["a:1"]}`)
		require.Equal(t, "a:1", next().Address)
		send(`{"drop":["a:1"]}`)
		synctest.Wait()
		before := logins.Load()
		time.Sleep(5 * time.Second)
		require.Equal(t, before, logins.Load())
		send(`{"addresses":["b:1"]}`)
		require.Equal(t, "b:1", next().Address)
	})
}

// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQuery(t *testing.T) {
	t.Parallel()
	fields := map[string]any{"status": "active", "workload-status": "waiting", "units": 3, "idle": true, "leader": ""}
	names := map[string]bool{}
	for name := range fields {
		names[name] = true
	}
	tests := map[string]struct {
		want  bool
		fails string
	}{
		`status=="active"`:                               {want: true},
		`status == 'active' && idle`:                     {want: true},
		`status!="active" || workload-status=="waiting"`: {want: true},
		`!(status=="active")`:                            {want: false},
		`!idle || units>=3 && units<4`:                   {want: true},
		`units>3`:                                        {want: false},
		`units==3`:                                       {want: true},
		`leader==""`:                                     {want: true},
		`false || (true && status=="x")`:                 {want: false},
		`status`:                                         {fails: `cannot evaluate query: active is neither true nor false`},
		`status>"a"`:                                     {fails: `cannot evaluate query: > compares numbers only`},
		`colour=="red"`:                                  {fails: `cannot parse query "colour==\"red\"": unknown name "colour"`},
		`status=="active`:                                {fails: `cannot parse query "status==\"active": literal not terminated`},
		`status=='active`:                                {fails: `cannot parse query "status=='active": text is not terminated`},
		`(idle`:                                          {fails: `cannot parse query "(idle": missing )`},
		`idle idle`:                                      {fails: `cannot parse query "idle idle": unexpected "idle"`},
		`status==`:                                       {fails: `cannot parse query "status==": unexpected end`},
		`&&`:                                             {fails: `cannot parse query "&&": unexpected "&&"`},
		``:                                               {fails: `cannot parse query "": unexpected end`},
		`status=="active" && status!="x" && idle && units!=4`: {want: true},
	}
	for text, test := range tests {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			q, err := parseQuery(text, names)
			var got bool
			if err == nil {
				got, err = truth(q, fields)
			}
			if test.fails != "" {
				require.EqualError(t, err, test.fails)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

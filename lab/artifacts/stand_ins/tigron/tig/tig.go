// SPDX-License-Identifier: Apache-2.0
// Package tig stands in for a package of nerdctl's test tools, which is not published
// as a module. The nerdctl program links a test helper that names one type of it and
// never runs.
package tig

import "testing"

// T is what a test is called with.
type T = testing.TB

//go:build race

package main

const underRace = true // and memory is several times what it would be

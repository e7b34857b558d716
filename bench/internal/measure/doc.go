// Package measure runs the measurements: it starts the servers, has them loaded in turns, so that what slows one slows the
// others, and notes what they use.
package measure

// Package fault is what running code is stopped by: the exceptions it can catch, the limits it cannot, and the charges that
// built-in functions pay for loops that the interpreter does not see.
package fault

// Package dialect reads Python as models write it, and turns it into the syntax tree of Starlark. What Starlark lacks becomes
// calls of hidden built-ins, predeclared names that begin with $ and that no code can spell.
//
// Source goes through four steps: [Parse] cuts it into tokens (lexer.go, strings.go), makes a tree of Python (parser.go and
// the files named after what they parse), finds out whose each name is (scope.go, names.go), and lowers the tree (lower….go).
//
// # Hidden built-ins
//
//	$attr(x, name)   $method(x, name)   $callee(f, name)   $keywords(dict, …)   $generator(list)   $neg $pos $invert (x)
//	$index(x, i)   $slice(x, lo, hi, step)   $setindex(v, x, i)   $del(x, i)   $iter(x)   $key(x)
//	$add $sub $mul $div $floordiv $mod $pow $and $or $xor $lshift $rshift $eq $ne $lt $le $gt $ge $in $notin $is (x, y)
//	$iadd $ior (x, y), in place   $unpack(x, before, after)   $concat(list, …)   $set(list)   $dict(dict, …)
//	$fstring(part, …)   $format(value, conversion, spec)   $enter()
//	$raise(e)   $try(body, ((classes, handler), …), else, finally)   $BREAK $CONTINUE $returned(v) $isreturn(s) $value(s)
//	$cell(name)   $get(cell)   $store(cell, v)   $unset(cell)   $stop(v)
//
// A variable that two functions of the lowered code write is a cell, kept in the variable itself: x = $cell("x") where its
// scope begins, $get(x) to read it, x[0] = v to write it. $store does so in an expression and returns v. $stop ends the code
// at a return at top level, with v as the outcome unless that is None.
//
// # Hidden names
//
// Names that begin with $ are temporaries and the functions that try became ($body1, $except1, $else1, $finally1). A trace
// that leaves those out shows the code's own functions. A variable that stands in for a name of the code, since that is a
// built-in's too, has the name with a space after it.
package dialect

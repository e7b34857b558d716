// Package access tells who a caller is, by the bearer token that it shows, and which role it has. What a role may do is for
// the doors to say; this package knows no HTTP.
//
// Roles are ordered, so that one comparison decides: what a [Trainer] may do an [Agent] may not, and a [Control] may do all.
// A [Keeper] has the tokens of two roles, and mints tokens of its own that open one agent handle and end by themselves:
//
//	keeper, err := access.NewKeeper(control, agent)
//	caller, ok := keeper.Identify(token, handle)
package access

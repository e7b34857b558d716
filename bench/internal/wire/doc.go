// Package wire has the messages of the measurements: texts to echo, requests and the replies they must get as templates,
// and the typed structs with which the floor servers answer.
//
// No two requests of a run carry the same text, and a reply is compared with what it must be byte for byte, so that no
// reply passes for another's. What a server's reply looks like is learnt from its first one, which is decoded and judged.
package wire

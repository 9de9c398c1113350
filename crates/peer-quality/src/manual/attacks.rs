//! What a peer may try, and what answers it today.
//!
//! The rule behind every row: what a peer delivered outranks what it claims, and doubt leads to the average, never to the top. Answers marked *host* need something that the
//! engine cannot do by itself.
//!
//! | attack | what it looks like | what answers it |
//! |---|---|---|
//! | pacing with idle gaps | fast bursts, silence between, so that only the bursts are timed | silence while a fetch is open forfeits [coverage](crate::estimate::Wire::burst), so the rate stays near the average; the completed fetch then ranks it by its wait |
//! | pacing with filler | silence filled with other bytes | gaps within the gate are part of the burst: the rate reads slow |
//! | padding with other traffic | a fast connection, and our fetch dribbles | the [record of fetches](crate::estimate::delivered) holds our bodies alone and decides while it is fresh |
//! | warming up, then going silent | a rate earned long ago | coverage leaks in minutes; the rate fades to the average; what replaces an ageing record is no better than [both it and the average](crate::estimate::predicted) |
//! | one crumb after the silence | a renewed time stamp | the past fades [before](crate::estimate::trust::personal) the crumb is added |
//! | metronomic bursts | a tiny variance, so a confident look | variance never raises [trust](crate::estimate::trust); it only widens error bars |
//! | many small SDUs | a high count | trust counts bytes |
//! | no echoes | bytes come, and the gate has nothing to go by | [said once](crate::Fact::EchoSilence), it loses to its equals until they come again |
//! | late echoes | a long round trip that excuses slowness | a long round trip makes the peer dearer at once; [ramps](crate::estimate::ramp) use the kernel's where it is known, and take at most half of a wait out of the record |
//! | an impossible rate | more bytes per round trip than any window | it is [doubted](crate::estimate::trust::sanity): a quarter of its coverage counts, and its error bar doubles |
//! | accepting and dribbling | a slot held for long | an overdue request raises the price of the next; a timeout with few bytes shows how slow it is at least, and where it is 12 times as slow as known it is believed at once; meanwhile the piece [moves](crate::hedge) |
//! | failing fast | short waits | failures are not waits; two in a row start a [pause](crate::audit::cooling) that doubles up to a minute |
//! | corrupting now and then | bytes that contradict their name | strikes that are paid back slowly; the second [condemns](crate::audit::proof), and a flood of identities does not wash it away |
//! | a claimed capacity | a number from the peer | no fact carries one |
//! | fresh identities | a clean slate, again and again | unknown is average, trials are few and carry one request each; those of one [address group](crate::facts::AddressGroup) share a twentieth |
//! | failing together | an outage that looks like ours | it takes most of the active peers, and nobody who delivers [on time meanwhile](crate::audit::common_mode); where the wire shows that their bytes kept coming it is theirs |
//! | behaving, then withholding what matters | a spotless record | retention is lost with one miss. Nothing else in the engine answers this yet: *host*, fetch critical items from several peers |
//! | poisoning the population with many peers | a slow average | it moves what is assumed of the unknown and no more; an address group has [two votes](crate::estimate::seats) |
//! | false sizes | a body promised small | not yet in the engine: *host*, check the size against what is signed |
//!
//! # What is left open
//!
//! A peer that serves small requests promptly, with no fetch open, earns coverage for each of them in full: a rate like that is honest for what was asked. It is found out with the
//! first large fetch. Hosts that do not report [`Fact::Sent`](crate::Fact::Sent) forgo the answer to idle gaps, because the engine then cannot know that a fetch is open.

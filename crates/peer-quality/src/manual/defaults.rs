//! Why the defaults are what they are.
//!
//! Few of them are measured yet; those that are not say so beside the code. What follows is the reasoning, by question.
//!
//! # What is a peer that nobody knows?
//!
//! The average of the peers now in the table, of its kind of path, in time to first byte, rate and useful concurrency. Assuming it better would pay whoever
//! brings fresh identities; assuming it worse would starve newcomers. Who failed last has no part in the average: it is of peers that deliver, or a few that do not would make
//! everybody else look hopeless. It is tried in a bounded share of the requests, never because doubt is attractive.
//!
//! # What does a failure cost?
//!
//! The time that it took, as often as it is to be expected before a success: a peer that is fast nine times of ten and silent for half a minute the tenth time is a slow one.
//!
//! # How many bytes is a rate worth?
//!
//! A rate read from the wire weighs [`cov / (cov + half)`](crate::estimate::trust::shrinkage) against the peer's own long-run rate. The
//! [half](crate::estimate::trust::coverage_half) is a typical transfer, 512 kB, until enough bursts of enough peers show the noise within a peer and
//! the spread between peers; then it is their ratio, but at least 450 kB, so that one cheap burst of 50 kB weighs a tenth, and at most 2 MB, so that
//! a few honest transfers are trusted.
//!
//! # How long does knowledge last?
//!
//! [Coverage](crate::estimate::trust::staleness) a minute, because the state of a path does; a peer's own rate and the record of its fetches a thousand
//! seconds, because distance and provisioning do. The record never lasts shorter than the rate: a claim must not outlive what audits it.
//! A peer that is reliably on time [keeps](crate::estimate::trust::retention) up to three quarters of its own rate across any silence, and loses that with the first miss.
//!
//! # When is a connection cold?
//!
//! When it is new, or was idle for longer than the retransmission timer that RFC 6298 would compute, with the Linux floor of 200 ms above the round trip. A
//! cold fetch starts with [ten segments](crate::estimate::ramp) (RFC 6928) and pays for rounds in which the window leaves the path idle. That belongs to the fetch and is taken out of the
//! record again, though never more than half of the wait, so that a peer cannot explain its slowness by an inflated round trip.
//!
//! # Why logarithms in the record of fetches?
//!
//! Delivery noise multiplies. In [logarithms](crate::estimate::log_estimate) one absurd sample moves the mean by a bounded factor, two in a row
//! mean that the world changed, and one estimator fits microseconds and minutes.
//!
//! # How many requests at once?
//!
//! The least [number](crate::estimate::saturation) beyond which the peer's total rate stops rising by more than a tenth; a newcomer starts at no more than four.
//!
//! # When does a piece move?
//!
//! When it is [late](crate::hedge): beyond p95 of its own peer behind its queue, and one lost packet more, and it still needs half as long again as another peer needs for all
//! of it. Who is on time is not given up while there is other work, however slow: that was decided when it was asked. Nor before as much time was spent on it as the other needs, or host and engine would change their minds in turns; and a piece that was
//! moved before has to gain more each time. A twentieth of what arrives may be wasted on
//! second requests, and thirty-two pieces at the start, when everybody is a stranger and the slowest of them decides when the first work ends.

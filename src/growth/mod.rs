//! CONCURRENT: one table that is doubled and halved while everybody uses it.
//!
//! # The state
//! There is a *current* table. While it is being replaced, there is also a *next* one, to which all entries are moved: a
//! larger one (a *growth*) or a smaller one (a *shrink*). `word/geometry.rs` has the arithmetic: a class is the same at
//! all levels, and has one stripe for the filter's whole life. So a lock of a stripe excludes all that change copies of
//! its classes in whatever table, and its version counts all takes of them.
//!
//! Each table follows the protocol of `table/stripe.rs`. What is said there of a class's two buckets holds here for its
//! two buckets in the current table and its two in the next one.
//!
//! # The rules
//! 1. One resize is under way at a time: it begins, and it ends, under the lock `resizing`. It begins under all locks of
//!    the stripes too. From then on no copy is relocated within the old table: each relocation asks, under its lock,
//!    whether its table is still the newest. The *phase* counts each beginning and each end. It is odd while there may be
//!    two tables: it becomes odd after the old table has its pointer to the next one and before anything is moved. It
//!    becomes even after everything is in one table, and that is the current one.
//! 2. **Growth.** A bucket becomes two neighbours in the larger table. To *split* it, a thread computes their words from
//!    the old word `v`, stores them, and then changes the old word from `v` to the *mark* by one compare-exchange. If that
//!    fails, it begins again from the new `v`. A thread that splits a bucket holds the bucket's lock for that, so there is
//!    one at a time. Any other thread that would change one of the new words makes sure first that the old one is marked.
//!    So nobody writes the new words before the mark, and nobody counts what they hold. (A lookup that did may find a copy
//!    that was taken out of the old word meanwhile.)
//! 3. **Shrink.** The entries are moved one by one, like a relocation: a copy is put into the smaller table by an ordinary
//!    insert, then the version is bumped, then the copy is taken out of the larger one, all under the lock of its class.
//!    A bucket that is empty is marked. If the smaller table has no room for a copy, everything is moved back in the same
//!    way, and the smaller table is given up.
//! 4. A mark is full, and no fingerprint is like it. So no insert adds to a bucket that is marked, and no lookup finds
//!    anything there.
//! 5. When all buckets are marked, the next table becomes the current one. The old table keeps its mark in each bucket,
//!    and its pointer to the next one until that is replaced too. It is freed when no thread reads it
//!    (`sync/replaceable.rs`).
//! 6. An operation reads the phase, and then looks for its tables: one if the phase is even, else both. If it has found a
//!    next table, it reads the phase again before it uses that: else it might be that of a later resize, of which nobody
//!    knows yet. An operation that has found what it looks for is done. Any other reads the phase again. If that has changed, it begins again.
//!
//! # Why a split changes nothing
//! Let the *contents* of a bucket of the larger table be its own word if the old one is marked, and else its half of the
//! old word. All entries of the half are in the new word when the mark appears, by rule 2: from the last computation to the
//! mark the old word has not changed, and nobody has written the new words. So the mark changes no contents. It is one
//! step, and it needs no bump: it moves nothing between the two buckets of a class.
//!
//! # Why no lookup misses a copy that was there throughout
//! *With one table.* The phase is even when a lookup begins, and the same when it has found nothing. It has seen no copy
//! leave the table for another one: else it would have seen that a resize has begun, and the phase would have changed. So
//! what holds for one table holds here. The same is true if the phase is odd, but the table has no next one: the
//! resize has ended then. (Or the table was replaced long ago. Then the phase has changed.)
//!
//! *With two.* A lookup reads the version, each bucket of the class in the old table and then in the next one, the version
//! again, and the phase again. (In a growth one word shows a bucket: the old one, or if that is marked, the new one. The
//! lookup leaves out the old words of the first buckets: `Level::marked` says how many are marked by now.) Suppose that it
//! found no copy, and that version and phase are the same.
//! - A growth has moved a copy only by marks, so from a word of the old table to one of the larger one. If the lookup read
//!   the old word before the mark, it saw the copy there. If it read the mark, or knew of it, it saw the new word as it
//!   was at the mark or later.
//! - A relocation, a removal or the move of a shrink bumps before it takes the copy. So the argument of `table/stripe.rs`
//!   holds: a section that the lookup has seen a take of would have changed the version.
//! - It has seen no copy leave the next table for a further one. Else it would have seen that a further resize has begun,
//!   and the phase would have changed. Nor has it missed one that came back to the old table because the shrink was undone:
//!   that moves copies as the shrink does.
//!
//! The reads of the phase and of the words are `SeqCst`, and so are their changes: in their one order (`table/stripe.rs`,
//! *Across keys*), an operation sees each resize into which an earlier one has put a copy.
//!
//! A lookup looks again only if a writer has taken a step meanwhile: a bump, or the beginning or the end of a resize. So it
//! is lock-free.
//!
//! # Linearizability
//! An operation under the lock of a class (a removal, `count`, `insert_if_absent`) takes effect as in one table: the lock
//! excludes all others that take or move copies of the class, except splits. Amid a growth it splits both buckets of the
//! class first, so all copies are in the larger table, and no split moves them. After it has read, it asks as above whether
//! the phase is the same; if not, it begins again. `insert_if_absent` asks that before it adds: from then on a copy of
//! the class could only come into a further table by a split of a word in which it has seen none.
//!
//! A plain insert is one compare-exchange on a word that is not marked, in whatever table. So it takes effect there, at
//! that step.
//!
//! A removal takes out a copy of exactly the class that was inserted, at any level, and all operations on a class are
//! ordered by its one lock. So here each operation on a key is linearizable over the multiset of classes, whoever removes
//! what. (Of several tables with classes of their own, that held only if each thread removed what it had inserted.)
//!
//! # Refusals
//! A refused insert has changed nothing. While a larger table is filled, an insert searches for room in that one alone, and
//! splits each bucket that it looks at. If it finds none there, it ends the resize, and tries again at rest.
//!
//! Amid a shrink, an insert adds to either table as long as the larger one could take all that is in: if the smaller one
//! has no room, everything must find its way back. A further copy of a key that is in waits for the end of the shrink,
//! since copies can only be in two buckets. Distinct keys find room, as in a table of a fixed size. Should there be none
//! all the same, both tables stay until there is: lookups, removals and `count` go on, and saves and inserts that find no
//! room are refused.
//!
//! # Saves
//! A save first ends a resize, so it begins with one table. A resize that begins later sees, by the lock `resizing`, that
//! the save is running, and each split or move sets the old word aside first, as a relocation does. The image keeps its
//! table alive until it is written.
//!
//! # Who waits for whom
//! The locks are taken in this order: `resizing`, those of the stripes, that of a bucket to be split, that of a save's
//! list. Inserts that find the current table full wait for `resizing` only if they find no room at all. No lookup takes any
//! of them.

#[allow(clippy::module_inception, reason = "the folder is about growth, and the file has it")]
pub(crate) mod growth;
pub(crate) mod image;
pub(crate) mod level;
pub(crate) mod operations;
pub(crate) mod plan;
pub(crate) mod resize;

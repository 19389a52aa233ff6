//! CONCURRENT: a table that grows and shrinks by some buckets at a time, while other threads use it.
//!
//! There is one table, whose words never move. It is extended by a *group* of buckets at a time: each bucket of the
//! group becomes two, by linear hashing (`word/classes.rs` has the arithmetic). No table is replaced. So readers need
//! no hazard pointers, and no reclamation waits for them.
//!
//! # The state
//! The *size* is one word, the *state*: a level, a split pointer, and whether the group at the split pointer is
//! *moving*. The *epoch* counts the changes of the state. It has 64 bits, so it never wraps.
//!
//! For a class and a state, each of the class's two sides has a *place*: a bucket's number, and the depth at which its
//! word is to be read. The *contents* of a side are what its place's word says at that depth; or, if its bucket is moving,
//! what the bucket's word in the array `moving` says at the depth of the level.
//!
//! # The rules
//! 1. A bucket's word changes only while its *gate* is held: one lock for the even buckets of its group, and one for the odd
//!    ones. A thread that changes the size holds the gates of the group and of the new buckets. So the place of a side stays
//!    while its gate is held: a thread checks, after it has locked the gate, that the place is still the same.
//! 2. A copy is removed from the contents of a side only under the stripe of its class, after a bump of the stripe's version.
//!    A relocation holds the gates of both sides. It adds to the other side, then bumps, then takes (`table/stripe.rs`). The
//!    store that takes may put a copy of another class in its place.
//! 3. The state changes under the lock `resizing`, and in this order: the state, then the epoch, then what the change is
//!    for.
//! 4. To split a group: lock its gates; copy its words to `moving`; make the state *moving*; store the two words of each
//!    bucket; move the split pointer past the group. To merge one: lock its gates; compute the whole words into `moving`;
//!    make the state *moving*, with the split pointer before the group; store the whole words; make the state idle. The words
//!    that are about to be replaced are copied for the saves before the state is *moving*.
//!
//! # Why a split or a merge changes no contents
//! The array `moving` has the same copies as the words of the group at both changes of the state, each on the same
//! side. While the state is *moving*, those words are the contents of no side, and no other thread may change them
//! (rule 1). So each change of the state is one step that leaves the contents of every side of every class as they are.
//! A split is no step of the protocol of stripes at all: what is proved of a table whose size is fixed holds for the
//! contents.
//!
//! # What a lookup reads
//! A lookup reads the epoch, the state, the version, the contents of both sides, the version again, and the epoch
//! again. If the epoch is the same, each word that it has read was the contents of its side when it was read: by rule
//! 3, no word that the lookup has seen was changed for a later state. (It may have read a new state before the epoch
//! counted it. Its places are right all the same.) So it is a lookup in a table of fixed size, and the argument of
//! `table/stripe.rs` says that *absent* is right if the version is the same too. If either has changed, it retries. It
//! retries only after a step of a writer: so it is lock-free. It takes no lock and writes nothing.
//!
//! *Present* needs the epoch as well: the same bits at another depth may be another class's.
//!
//! An operation that holds the stripe of a class (`remove`, `count`, `insert_if_absent`) reads the contents in the same way,
//! without the version: no copy of the class is removed meanwhile.
//!
//! # Linearizability
//! As for a table of fixed size, with the contents in the place of words. A copy is added or taken by one store, under the
//! gate, to the word that the contents are at that moment: the thread has found the place under the gate, and the state
//! can move that bucket only under the gate too. Without the gate, a thread could read an empty bucket, and add to it after
//! a split, in the wrong half: the word would still be empty.
//!
//! An insert that makes room adds its copy by the last store of its last relocation, if it need not count copies. So no other
//! thread can take the slot first. For the class of the copy that has moved, this store is the one that takes it. For the
//! insert's class, it is the one that adds. Each class by itself sees what it would see of two stores next to each other.
//!
//! ## Across keys
//! All accesses to words are `SeqCst`, and so are the step of the epoch and a lookup's second read of it. So they have
//! one order, as in `table/stripe.rs`. A lookup that has read a word after the epoch's step, in that order, sees the
//! step. What it reads of `moving` remains the contents until the next step, which it would see too. The lookup's first
//! read of the epoch and that of the state need not be in that order: if they are late, the second read of the epoch
//! shows it.
//!
//! # How many copies a class may have
//! The copies of a class fill at most half of the slots of its two buckets. (Buckets of two depths differ by at most one slot.
//! So that is as many as the smaller one has.) Then copies of a few keys never fill the buckets of other keys: take the
//! buckets as vertices, and each class with so many copies as an edge. Each component that is a tree, of `k` edges and `k + 1`
//! buckets, has room for all its copies in `k` buckets, and relocations lead to the last. One cycle in a component takes that
//! too, and two are too many. While there are fewer than half as many such classes as buckets, nearly all components of random
//! edges are trees. Beyond that, such keys take up at least half of all slots, and the table grows for what it holds.
//!
//! With one copy more per class, a tree of `k` edges needs `k (b + 1)` slots of `b (k + 1)`, so one of more than `b` edges has
//! too few.
//!
//! An insert adds without a count if it sees no copy: it reads the bucket on the other side without a lock, and that to
//! which it adds under its gate. If it adds by a relocation, it reads both again for that. Otherwise it counts the
//! copies under the class's stripe, under which none is removed or relocated. Inserts that overlap may thus exceed
//! the limit by one, and not by two: an insert without a count adds only on a side without a copy, and of those that
//! overlap one counted insert, at most one finds the other side like that. An insert whose buckets are
//! being moved counts the copies, too: the word of a side that is moving may be of another depth. (An insert does not see
//! that the size has changed and changed back since it read the other bucket. What it took for that side may then have been
//! half of it, so it may add one copy more.) A copy that a table has beyond the limit stays: an older snapshot may have
//! some, and they are in a copy of the table too.
//!
//! A merge that would leave a class more copies than it may have in the smaller table is not carried out.
//!
//! # How much one insert does
//! It searches at most four times, and once more under the lock `resizing` and those of all stripes. It searches again
//! after each group that it splits under `resizing`, and each time that another thread takes the room that was found
//! last. It splits at most four groups. Where copies or chosen keys leave it no room even so, it fails, and the size
//! stays as it is by then.
//!
//! An insert grows the table for three reasons:
//! - The table holds more items than its capacity. One insert in 32 of a shard of the counters checks that
//!   (`limit.rs`), and each that has found no path (`grow_if_over_capacity`, `add_alone`), which counts its own copy too.
//! - The insert has found no room under all locks (`add_alone`), and the table holds at least a quarter of its
//!   capacity.
//! - It has found room only after a long search (`grow_if_quarter_full`), and the table holds at least a quarter of its
//!   capacity. So keys of several copies each hardly ever fail: searches become long before there is no room.
//!
//! A table that can grow no further takes no more items than its capacity at that size: `limit.rs`.
//!
//! # Saves
//! A save begins while it holds all stripes and all gates, including those that the first growth has added meanwhile.
//! So no relocation and no insert is half done, and no group is moving: the image is exactly the table at that moment.
//! Each later change of a word copies the old one for the saves first (`table/image/copy_on_write.rs`), those of splits
//! and merges too. A thread that holds a gate sees, as one that holds a stripe, each save that has begun, and none
//! begins meanwhile. The image has as many words as there were buckets. Words beyond its end are not in it.
//!
//! # Memory
//! No memory is asked for, and none is freed, under any lock here. A thread that is to split a group finds under `resizing`
//! what it lacks: the array `moving` with its gates, a segment, or spare memory for what saves need. Then it releases the
//! lock, gets the memory, and begins again; what it does not use is freed after the lock is released (`SplitMemory`). Each
//! time, another thread has changed the size or begun a save meanwhile, or the thread has lacked something else. If memory is
//! denied, the next try reports that.
//!
//! The array `moving`, and the gates that the first groups do not have, are made for the first change of the size, before a
//! state is *moving*, and stay: so a thread that has read such a state sees them.
//!
//! A word can be read until the table is dropped (`machine/words.rs`). When the table has become smaller, the system may
//! take the pages beyond its end back. A thread that is late may read zeros there, or an old word. The epoch has changed,
//! so it retries. A split stores both words of a bucket, whatever they were. No pages go back while a save is running, which
//! may still read them, nor while the size changes.
//!
//! # A thread that dies
//! No step here can panic. If a thread died while a group is moving, the gates would be free again, and the state still
//! *moving*. All copies are in `moving`, so the next thread that needs one of these buckets, or changes the size, stores
//! them back (`recover`). It need not copy the old words: each save that is running began before the thread that died
//! had locked the gates, and so has them by rule 4. (A later one recovers before it begins.)
//!
//! # Who waits for whom
//! Locks are taken in this order: `resizing`, those of the stripes, those of the gates (both of a relocation, those of a
//! group, and all of them, in order), that of a save's list. That of `requests` is taken alone or under `resizing`: a call
//! that requests more buckets notes how many, and a merge leaves as many. So two calls do not undo each other's work, and
//! neither waits for the other. A thread holds a gate for some instructions, and those of a group for as long as it takes to
//! split it. `clear` holds all of them while it empties 65,536 buckets, and gives them back before it goes on. No lookup takes
//! any lock.
//!
//! # The files
//! | file | what |
//! |---|---|
//! | `plan.rs` | PURE: the sizes that a table can have, and its capacity at each |
//! | `growing_table.rs` | the table: its state, epoch, gates and words, and `recover` |
//! | `lookup.rs` | what `contains` (`lookup/growing.rs`) reads, `count`, and how an operation reads contents |
//! | `slots.rs` | adding and taking one copy, under a gate |
//! | `room.rs` | the search for room, and one relocation |
//! | `resize.rs` | splits and merges, and when they are due |
//! | `limit.rs` | how many items there are at most, and the check of one insert in 32 |
//! | `batch.rs` | batches of inserts and removals, which prefetch what those to come need |
//! | `change.rs` | `insert`, `insert_if_absent`, `remove`, `clear`, which use all of the above |
//! | `image.rs` | saves, digests, merging with another filter, and what all cores of filters have in common (`table/core.rs`) |

pub(crate) mod batch;
pub(crate) mod change;
pub(crate) mod growing_table;
pub(crate) mod image;
pub(crate) mod limit;
pub(crate) mod lookup;
pub(crate) mod plan;
pub(crate) mod resize;
pub(crate) mod room;
pub(crate) mod slots;

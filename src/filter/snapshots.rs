//! Snapshots of all filters, written once: how each is saved and loaded. What is the filter's own is handed in.

use core::hash::BuildHasher;
use std::io;
use std::path::Path;

use crate::error::load::LoadError;
use crate::filter::concurrent::ConcurrentCuckooFilter;
use crate::filter::expiring::ExpiringCuckooFilter;
use crate::filter::growable::GrowableCuckooFilter;
use crate::filter::maplet::ConcurrentCuckooMaplet;
use crate::filter::rotating::RotatingCuckooFilter;
use crate::hasher::probe::probe;
use crate::snapshot::format::Saved;
use crate::snapshot::loader::{FromSnapshot, Loaded, Loader};
use crate::snapshot::save::Save;
use crate::snapshot::schema::Schema;
use crate::snapshot::source::Source;
use crate::table::begun::Imaged;

macro_rules! snapshots {
    ($Filter:ident of $Core:ty, with $insert:literal: saved: $(#[$save:meta])* loaded: $(#[$load:meta])*) => {
        /// Snapshots: the filter as bytes, to survive a restart or to travel. Only with the feature `snapshot`.
        ///
        /// A snapshot is of use only to those who have the same hasher, and **not every hasher is the same tomorrow**:
        ///
        /// | hasher | survives a restart | an upgrade of the compiler or of dependencies | another machine |
        /// |---|---|---|---|
        /// | [`DefaultHashBuilder`](crate::DefaultHashBuilder), [`std::hash::RandomState`] | no | no | no |
        /// | `StableState` (feature `stable-hash`), keys that are text, bytes or integers | yes | yes, as long as std encodes these as it does now, or else [`load`](Self::load) says so | yes |
        /// | `StableState::hash_bytes` of the caller's own bytes, and the operations on hashes | yes | yes | yes |
        /// | [`BuildHasherDefault`](core::hash::BuildHasherDefault) of a hasher without a key | yes | as long as that hasher stays as it is | as far as that hasher says |
        ///
        /// [`load`](Self::load) is told by a fixed probe, whose hash is in the snapshot, whether the hasher is the same; and
        /// by the [schema](Self::schema) whether the keys are.
        ///
        /// ```
        /// # #[cfg(feature = "stable-hash")] {
        #[doc = concat!("use concurrent_cuckoo_filter::{", stringify!($Filter), ", StableState};")]
        ///
        #[doc = concat!("type Revoked = ", stringify!($Filter), "<str, StableState>;")]
        ///
        /// let hasher = StableState::with_key(*b"sixteen secrets!"); // from the configuration
        #[doc = $insert]
        /// # let folder = std::env::temp_dir().join(format!("snapshots-{}", std::process::id()));
        /// # std::fs::create_dir_all(&folder)?;
        #[doc = concat!("# let path = folder.join(\"", stringify!($Filter), "\");")]
        /// revoked.save_to_path(&path)?;
        ///
        /// let loaded = Revoked::load_from_path(&path, hasher, 1 << 20)?;
        /// assert!(loaded.contains("token-17"));
        /// assert_eq!(loaded.len(), 1);
        /// # }
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        impl<T: ?Sized, S: BuildHasher> $Filter<T, S> {
            /// Writes a snapshot of the filter as it is now, while others go on using it.
            ///
            /// The moment is at the beginning of the call: before the first byte is written, and before anything that waits
            /// for a writer. (Only a [`clear`](Self::clear) or a rotation that is under way is waited for before it.) Of what
            /// other threads do from then on:
            ///
            /// - **Each key that is in at that moment is in the snapshot**, as often as it is in the filter, however it is
            ///   relocated, and also if it is removed afterwards.
            /// - **A key whose insert begins after that moment is not in the snapshot.** One whose insert overlaps the moment
            ///   may be in or not.
            /// - What [`clear`](Self::clear) removes meanwhile may be in or not.
            ///
            /// So if one thread makes all changes, and saves between two of them, the snapshot is exactly what the filter
            /// was then, except where a `clear` comes before it is written. [`begin_save`](Self::begin_save) separates the moment from the writing, and takes a position in the
            /// caller's log along.
            ///
            $(#[$save])*
            ///
            /// The snapshot holds fingerprints and neither keys nor the hasher's key. The format is documented in
            /// `src/snapshot/format.rs`.
            ///
            /// Cost: one pass over the table, in pieces of 8 KiB, which are written one by one, so that a file needs no
            /// buffer; `to` is flushed at the end. No copy of the table is made. Lookups go on as ever. Operations that lock
            /// a stripe wait at the beginning for as long as it takes to lock all of them (some microseconds). Then each
            /// change takes one more lock, for some 100 ns and more with several saves, and puts the bucket's word aside
            /// if the bucket has yet to be written and that has not been done. That takes 16 to 64 bytes until the bucket
            /// has been written, and is allocated. So a slow writer costs memory in proportion to what is changed meanwhile;
            /// it holds up nobody. Any number of saves can run at a time, and none waits for another's writer.
            ///
            /// # Errors
            /// Those of `to`; `OutOfMemory` if the memory was refused in which words are put aside (the changes themselves
            /// are done). What has been written then is no snapshot, and the filter is as it was.
            pub fn save(&self, to: impl io::Write) -> io::Result<()> {
                self.begin_save()?.write_to(to)
            }

            /// Writes a snapshot to a file, which has either all of the old bytes or all of the new ones, whatever happens:
            /// [`Save::write_to_path`] says how.
            ///
            /// # Errors
            /// As for [`save`](Self::save), and those of the file system.
            pub fn save_to_path(&self, path: impl AsRef<Path>) -> io::Result<()> {
                self.begin_save()?.write_to_path(path)
            }

            /// Begins a save: its moment is past when this returns, and it can be written at any time, on any thread.
            ///
            /// For what [`save`](Self::save) does not take: a [position](Save::position) in the caller's log and an
            /// [attachment](Save::attachment).
            ///
            /// The save borrows the filter. To write it on a thread that may outlive this call, where the filter is in an
            /// [`Arc`](std::sync::Arc), let that thread begin the save and tell, by a channel, when it has.
            ///
            /// Cost: locks all stripes of each table for some microseconds, after a `clear` or a rotation that is under way;
            /// takes 24 bytes for each 8 KiB of the table.
            ///
            /// # Errors
            /// `OutOfMemory` if that memory was refused.
            pub fn begin_save(&self) -> io::Result<Save<'_>> {
                let probe = probe(&self.hasher);
                let schema = self.schema.name::<T>();
                let begun = self.core.begin_save()?;
                Ok(Save::new(<$Core as Saved>::KIND, probe, schema, self.core.head(&begun), begun))
            }

            /// Reads a snapshot into a new filter of at most so many bytes.
            ///
            /// `hasher` must be the one with which the snapshot was made. Everything that is read is checked, and nothing
            /// larger than `memory_limit` is allocated: [`Loader::read`] says what that means. A [`Loader`] also takes
            /// another schema than the name of the key type, and gives back position and attachment.
            ///
            $(#[$load])*
            /// # Errors
            /// Each failure has its own [`LoadError`]. **A filter that could not be loaded is not an empty one**: rebuild it
            /// from the source of truth.
            pub fn load(from: impl io::Read, hasher: S, memory_limit: usize) -> Result<Self, LoadError> {
                Ok(Loader::<Self, S>::new(hasher, memory_limit).read(from)?.filter)
            }

            /// Reads a snapshot from a file, as [`load`](Self::load) does.
            ///
            /// # Errors
            /// As for `load`; a file that can't be opened is [`LoadError::Io`].
            pub fn load_from_path(path: impl AsRef<Path>, hasher: S, memory_limit: usize) -> Result<Self, LoadError> {
                Ok(Loader::<Self, S>::new(hasher, memory_limit).read_path(path)?.filter)
            }

            /// What snapshots of this filter say that its keys are: what the builder was told, or the name of the key type.
            #[must_use]
            pub fn schema(&self) -> String {
                self.schema.name::<T>().into_owned()
            }
        }

        impl<T: ?Sized, S: BuildHasher> FromSnapshot<S> for $Filter<T, S> {
            fn from_snapshot(mut source: Source<'_>, hasher: S, schema: Schema) -> Result<Loaded<Self>, LoadError> {
                let label = source.header(<$Core as Saved>::KIND, &schema.name::<T>(), probe(&hasher))?;
                let core = <$Core as Saved>::load(&mut source, size_of::<Self>())?;
                source.end()?;
                Ok(Loaded::new(Self::from_parts(core, hasher, schema), label))
            }
        }

        /// As the bytes of a snapshot: see [`save`](Self::save) for what it holds while others change the filter. Only with
        /// the feature `serde`.
        ///
        /// `serde` wants all bytes at once, so this takes a second copy of the tables, which `save` does not.
        #[cfg(feature = "serde")]
        impl<T: ?Sized, S: BuildHasher> serde::Serialize for $Filter<T, S> {
            fn serialize<R: serde::Serializer>(&self, serializer: R) -> Result<R::Ok, R::Error> {
                crate::snapshot::serde::serialize(self.begin_save(), self.memory_usage(), serializer)
            }
        }

        /// From the bytes of a snapshot, checked as by [`load`](Self::load), for hashers whose default is always the same. Only
        /// with the feature `serde`.
        ///
        /// With any other hasher this does not compile; [`SameByDefault`](crate::SameByDefault) shows the way that does, a
        /// [`Loader`].
        ///
        /// **There is no memory limit, except by the bytes.** No table is allocated before its bytes are there. So the filter
        /// takes up at most 12 times its bytes, and at most twice its bytes from 128 KiB on. Small filters take the most, for
        /// each table has a fixed part of some 250 bytes: 255 generations of one bucket are 7,975 bytes, which become 66,176.
        /// While a format without bytes is read, such as JSON, up to three times the bytes come on top. A growable filter that
        /// was loaded in this way can grow without a limit. Use a `Loader`, which takes one, where that is too much.
        #[cfg(feature = "serde")]
        impl<'de, T: ?Sized, S: crate::SameByDefault> serde::Deserialize<'de> for $Filter<T, S> {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                use serde::de::DeserializeSeed;

                Loader::<Self, S>::new(S::default(), usize::MAX).deserialize(deserializer)
            }
        }
    };
}

snapshots! {
    ConcurrentCuckooFilter of Box<dyn crate::table::any::FilterTable>,
    with "let revoked = Revoked::with_capacity_and_hasher(1000, hasher.clone());\nrevoked.insert(\"token-17\")?;":
    saved:
    /// The snapshot of a filter of text is `71 + 8 · buckets` bytes long, a little less than
    /// [`memory_usage`](Self::memory_usage).
    loaded:
}

snapshots! {
    ConcurrentCuckooMaplet of Box<dyn crate::table::any::MapletTable>,
    with "let revoked = Revoked::builder_with_hasher(hasher.clone()).capacity(1000).value_bits(4).build()?;\nrevoked.insert(\"token-17\", 3)?;":
    saved:
    /// The snapshot of a maplet of text is `76 + 8 · buckets` bytes long. The values are in it.
    loaded:
}

snapshots! {
    ExpiringCuckooFilter of Box<dyn crate::table::any::ExpiringTable>,
    with "let revoked = Revoked::builder_with_hasher(hasher.clone()).capacity(1000).lifetime_in_ticks(60).build()?;\nrevoked.advance_to(28_500_000);\nrevoked.insert(\"token-17\", 28_500_060)?;":
    saved:
    /// The snapshot states the tick of its moment, and holds all entries that are live then, each with its end. It may also hold some
    /// that have just expired. The first [`advance_to`](Self::advance_to) after loading has expire what has died since. The snapshot of a
    /// filter of text is `107 + 8 · buckets` bytes long.
    loaded:
    /// If the caller's clock is behind the one of the snapshot, as one that begins at 0 with each process, nothing would expire until it
    /// has caught up. So begin a new clock then: [`restart_clock`](Self::restart_clock).
    ///
}

snapshots! {
    GrowableCuckooFilter of crate::tables::growth::Tables,
    with "let revoked = Revoked::with_capacity_and_hasher(1000, hasher.clone());\nrevoked.insert(\"token-17\")?;":
    saved:
    /// Tables that are added meanwhile are not in the snapshot. What layouts the tables have follows from the rate, by
    /// arithmetic on floating-point numbers. A machine on which that comes to others, which can be at rates just between two
    /// of them, says so when it loads the snapshot.
    loaded:
    /// **`memory_limit` is the filter's limit from then on**, as
    /// [`GrowableBuilder::memory_limit`](crate::GrowableBuilder::memory_limit) sets it: growth beyond it is refused. (The
    /// limit of the filter that was saved is not in the snapshot.)
    ///
}

snapshots! {
    RotatingCuckooFilter of crate::tables::generations::Generations,
    with "let revoked = Revoked::with_capacity_and_hasher(1000, hasher.clone());\nrevoked.insert(\"token-17\")?;":
    saved:
    /// The snapshot is of the generation and the tick of its moment: the first [`advance_to`](Self::advance_to) after loading
    /// has as many generations expire as periods have passed since. (If the clock is another one after loading, call
    /// [`restart_clock`](Self::restart_clock) first.) Where a rotation comes while the snapshot is being written, the generation
    /// that expires by it may be missing.
    loaded:
    /// If the caller's clock is behind the one of the snapshot, as one that begins at 0 with each process, nothing would
    /// expire until it has caught up. So begin a new clock then:
    ///
    /// ```
    /// # #[cfg(feature = "stable-hash")] {
    /// # use concurrent_cuckoo_filter::{RotatingCuckooFilter, StableState};
    /// # let hasher = StableState::with_key([7; 16]);
    /// # let seen = RotatingCuckooFilter::<str, _>::with_capacity_and_hasher(100, hasher.clone());
    /// # seen.advance_to(28_500_000);
    /// # let mut snapshot = Vec::new();
    /// # seen.save(&mut snapshot)?;
    /// let seen = RotatingCuckooFilter::<str, StableState>::load(&snapshot[..], hasher, 1 << 20)?;
    /// let now = 3; // of a clock that began when this process did
    /// if seen.tick().is_some_and(|tick| tick > now) {
    ///     seen.restart_clock(now);
    /// }
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
}

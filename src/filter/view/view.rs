//! A filter in the bytes of a snapshot: the public type.

use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::panic::{RefUnwindSafe, UnwindSafe};

use crate::error::load::LoadError;
use crate::filter::batch_key::BatchKey;
use crate::filter::by_hash::{ByHash, Hashed};
use crate::filter::expiring::filter::ExpiringCuckooFilter;
use crate::filter::maplet::filter::CuckooMaplet;
use crate::filter::shared::batches::{append_to, blocks};
use crate::filter::snapshot_info::SnapshotInfo;
use crate::filter::view::viewed::Viewed;
use crate::filter::view::words::{SnapshotWords, ViewTable as _};
use crate::hasher::probe::probe;
use crate::snapshot::format::{Declared, check_clock};
use crate::snapshot::loader::Loader;
use crate::snapshot::parts::VERSION;
use crate::snapshot::source::{Metadata, SnapshotSource};
use crate::word::tick::Tick;
use crate::word::values::Values;

/// A filter of the type `F` in the bytes `B` of a snapshot: lookups in a snapshot that is mapped from a file, embedded in a
/// program, or shared between processes, without loading it. Needs the feature `snapshot`.
///
/// ```
/// # #[cfg(feature = "stable-hash")] {
/// use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, StableHashBuilder, View};
///
/// type Revoked = ConcurrentCuckooFilter<str, StableHashBuilder>;
///
/// let hasher = StableHashBuilder::with_key(*b"sixteen secrets!");
/// # let revoked = Revoked::with_capacity_and_hasher(1000, hasher.clone());
/// # revoked.insert("token-17")?;
/// # let mut snapshot = Vec::new();
/// # revoked.save(&mut snapshot)?;
/// // `snapshot`: a mapped file, `include_bytes!("revoked.ccf")`, an `Arc<[u8]>`, a `Vec<u8>`, `&[u8]`
/// let revoked = View::<Revoked, _>::new(snapshot, hasher)?;
/// assert!(revoked.contains("token-17"));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// It reads the words of the table where they are, at any address, and copies none. So it uses a few hundred bytes (and the
/// decode table of a semi-sorted layout, 4 to 256 KiB, which all filters of that layout share), whatever the size of the
/// snapshot, and is constructed at once. It cannot be changed: to change a filter, [load](crate::Loader) it.
///
/// `B` is anything that lends the bytes: `&[u8]`, `&'static [u8; N]`, `Vec<u8>`, `Arc<[u8]>`, or the owned map of a
/// crate such as `memmap2`. A view is `Send` and `Sync` if `B` and the hasher are. Nothing is locked, counted or written.
/// The page [`beyond_one_process`](crate::guide::beyond_one_process#without-loading) shows how processes share a file that is
/// replaced.
///
/// # Verified or not
/// [`new`](Self::new) and [`Loader::view`](crate::Loader::view) check the header as loading does: the type of the
/// filter, its keys, its hasher, its settings, the length, and the checksums of all that. They do not check the words.
/// Only a scan of the whole snapshot shows whether it has changed by accident since it was saved:
/// [`verify`](Self::verify).
///
/// In bytes that were not verified, a damaged word gives **wrong answers, also "definitely absent" for a key that was
/// inserted**. It gives no panic, and nothing outside of the bytes is read. Skip `verify` if something else vouches for the
/// bytes: a signature, a file system with checksums, or the process that has verified the file before.
///
/// **The bytes must stay as they are** while there is a view. If a mapped file becomes shorter, the system kills the process
/// that reads it (`SIGBUS`). So replace a file by another one, as
/// [`save_to_path`](crate::ConcurrentCuckooFilter::save_to_path) does, and never write into it.
///
/// Cost of a lookup: two cache lines of the table, as in the filter. Where the table does not begin at a multiple of 8
/// bytes, one word in eight lies on two lines. (In a mapped file of a `ConcurrentCuckooFilter` it does if the lengths of the
/// schema and of the attachment add up to a multiple of 8.)
pub struct View<F: Viewed, B> {
    bytes: B,
    /// Where the words begin.
    start: usize,
    info: SnapshotInfo,
    table: F::Table,
    clock: F::Clock,
    hasher: F::Hasher,
}

/// Construction and metadata.
impl<F: Viewed, B: AsRef<[u8]>> View<F, B> {
    /// A view of a snapshot with this hasher, which must be the one with which the snapshot was made. The bytes are the
    /// snapshot and nothing else. [`Loader::view`](crate::Loader::view) also takes a schema other than the name of the key
    /// type, and settings that are expected.
    ///
    /// Cost: it reads about 100 bytes at the beginning and 12 at the end, copies the schema and the attachment, and
    /// allocates for these and for a few hundred bytes. The table is not read: see [verified or not](Self#verified-or-not).
    ///
    /// # Errors
    /// Those of loading: each failure has its own [`LoadError`]. There is no memory limit. Damage to the words, which
    /// loading finds, is found only by [`verify`](Self::verify): `InvalidBucket`, `LifetimeTooLong`, `WrongCount` and
    /// `WrongChecksum` of [`SnapshotDamage`](crate::SnapshotDamage). **A snapshot that could not be viewed is not an
    /// empty filter.**
    pub fn new(bytes: B, hasher: F::Hasher) -> Result<Self, LoadError> {
        Loader::new(hasher, 0).view(bytes)
    }

    /// Reads the whole snapshot, and checks all that loading checks: its checksum, each bucket, and the number of keys.
    /// A snapshot that passes is what was saved, as far as a checksum of 32 bits can tell; see [verified or
    /// not](Self#verified-or-not).
    ///
    /// Cost: one pass in pieces of 8 KiB, and the attachment's memory. It takes about half as long as loading.
    ///
    /// # Errors
    /// As for [`SnapshotInfo::verify`].
    pub fn verify(&self) -> Result<(), LoadError> {
        SnapshotInfo::verify(self.bytes.as_ref()).map(drop)
    }

    /// Returns the metadata of the snapshot: the filter's capacity and layout, the schema, the position and the
    /// attachment, and the tick of an expiring filter's clock.
    #[must_use]
    pub fn info(&self) -> &SnapshotInfo {
        &self.info
    }

    /// Returns how many keys the snapshot declares, as the filter's `len` counted them. [`verify`](Self::verify) counts
    /// them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.info.len.unwrap_or_default() as usize
    }

    /// Whether the snapshot declares no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the expected false-positive rate with as many keys: the share of lookups of absent keys that find something.
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.info.plan.false_positive_rate_with(self.len())
    }

    /// Returns the view with lookups by hash instead of key.
    #[inline(always)]
    #[must_use]
    pub fn by_hash(&self) -> ByHash<'_, Self> {
        ByHash(self)
    }

    /// Returns the hash of a key, for [`by_hash`](Self::by_hash).
    #[inline(always)]
    #[must_use]
    pub fn hash_one<Q>(&self, key: &Q) -> Hashed
    where
        F::Key: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        Hashed(self.hasher.hash_one(key))
    }

    fn hash_all<K: Hash>(&self, keys: impl IntoIterator<Item = K>) -> impl Iterator<Item = Hashed> {
        keys.into_iter().map(|key| Hashed(self.hasher.hash_one(key)))
    }

    /// Returns the bytes.
    #[must_use]
    pub fn into_bytes(self) -> B {
        self.bytes
    }

    #[inline]
    fn words(&self) -> SnapshotWords<'_> {
        SnapshotWords::from(self.bytes.as_ref(), self.start)
    }
}

/// Lookups in a view of any filter without a clock. They give the answers that the filter itself gave when the save
/// began.
impl<F: Viewed<Time = ()>, B: AsRef<[u8]>> View<F, B> {
    /// Returns whether the key is in the filter: `false` if it is definitely absent, `true` if it is probably present.
    /// The share of absent keys that get `true` is the [false-positive rate](Self::false_positive_rate).
    ///
    /// Cost: the key's hash, and two cache lines of the table.
    #[must_use]
    #[inline]
    pub fn contains<Q>(&self, key: &Q) -> bool
    where
        F::Key: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().contains(self.hash_one(key))
    }

    /// [`contains`](Self::contains) for many keys: appends the answers to `found`, one for each key and in the same
    /// order.
    ///
    /// Cost: as for single lookups, but the cache lines of many keys are loaded in parallel. In a large table that is
    /// several times as fast. It allocates nothing but what `found` does.
    pub fn contains_batch<K: BatchKey<F::Key> + Hash>(&self, keys: impl IntoIterator<Item = K>, found: &mut Vec<bool>) {
        self.by_hash().contains_batch(self.hash_all(keys), found);
    }
}

/// The values in a view of a maplet.
impl<T: ?Sized, S: BuildHasher, B: AsRef<[u8]>> View<CuckooMaplet<T, S>, B> {
    /// Returns all values of the key; none if it is absent. As in the maplet itself, they include a value of another
    /// key for a share of the keys.
    ///
    /// Cost: the key's hash, and two cache lines of the table.
    #[must_use]
    #[doc(alias = "get")]
    #[inline]
    pub fn values<Q>(&self, key: &Q) -> Values
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().values(self.hash_one(key))
    }

    /// [`values`](Self::values) for many keys: appends the values of each to `found`, in the order of the keys.
    pub fn values_batch<K: BatchKey<T> + Hash>(&self, keys: impl IntoIterator<Item = K>, found: &mut Vec<Values>) {
        self.by_hash().values_batch(self.hash_all(keys), found);
    }
}

/// Lookups in a view of a filter whose entries expire. They take the current tick: a view has no clock.
impl<T: ?Sized, S: BuildHasher, B: AsRef<[u8]>> View<ExpiringCuckooFilter<T, S>, B> {
    /// Returns whether the key has an entry that is live at this tick: what the filter would answer if it were loaded
    /// and advanced to it. Earlier ticks than that of the snapshot are treated as `info().now`, since the entries that
    /// had expired by then are gone.
    ///
    /// Cost: the key's hash, and two cache lines of the table.
    #[must_use]
    #[inline]
    pub fn contains_at<Q>(&self, key: &Q, tick: Tick) -> bool
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().contains_at(self.hash_one(key), tick)
    }

    /// [`contains_at`](Self::contains_at) for many keys: appends the answers to `found`, one for each key and in the
    /// same order.
    pub fn contains_at_batch<K: BatchKey<T> + Hash>(
        &self,
        keys: impl IntoIterator<Item = K>,
        tick: Tick,
        found: &mut Vec<bool>,
    ) {
        self.by_hash().contains_at_batch(self.hash_all(keys), tick, found);
    }
}

/// Lookups by hash in a view of any filter without a clock.
impl<F: Viewed<Time = ()>, B: AsRef<[u8]>> ByHash<'_, View<F, B>> {
    /// Returns whether the key with this hash is in the filter. See [`View::contains`].
    #[inline]
    #[must_use]
    pub fn contains(self, hash: Hashed) -> bool {
        self.0.table.contains(self.0.words(), hash.0)
    }

    /// Looks up the keys with these hashes, and appends the answers to `found`. See [`View::contains_batch`].
    pub fn contains_batch(self, hashes: impl IntoIterator<Item = Hashed>, found: &mut Vec<bool>) {
        self.0.table.contains_batch(self.0.words(), &mut blocks(hashes), &mut append_to(found));
    }
}

/// The values of a hash in a view of a maplet.
impl<T: ?Sized, S: BuildHasher, B: AsRef<[u8]>> ByHash<'_, View<CuckooMaplet<T, S>, B>> {
    /// Returns the values of the key with this hash. See [`View::values`].
    #[inline]
    #[must_use]
    pub fn values(self, hash: Hashed) -> Values {
        self.0.table.values(self.0.words(), hash.0)
    }

    /// Looks up the keys with these hashes, and appends the values of each to `found`. See [`View::values_batch`].
    pub fn values_batch(self, hashes: impl IntoIterator<Item = Hashed>, found: &mut Vec<Values>) {
        self.0.table.values_batch(self.0.words(), &mut blocks(hashes), &mut append_to(found));
    }
}

/// Lookups by hash in a view of a filter whose entries expire.
impl<T: ?Sized, S: BuildHasher, B: AsRef<[u8]>> ByHash<'_, View<ExpiringCuckooFilter<T, S>, B>> {
    /// Returns whether the key with this hash has an entry that is live at this tick. See [`View::contains_at`].
    #[inline]
    #[must_use]
    pub fn contains_at(self, hash: Hashed, tick: Tick) -> bool {
        self.0.clock.live_at(tick.get()).is_some_and(|live| self.0.table.contains_with(live, self.0.words(), hash.0))
    }

    /// Looks up the keys with these hashes, and appends the answers to `found`. See [`View::contains_at_batch`].
    pub fn contains_at_batch(self, hashes: impl IntoIterator<Item = Hashed>, tick: Tick, found: &mut Vec<bool>) {
        match self.0.clock.live_at(tick.get()) {
            Some(live) => {
                self.0.table.contains_with_batch(live, self.0.words(), &mut blocks(hashes), &mut append_to(found));
            }
            None => found.extend(hashes.into_iter().map(|_| false)),
        }
    }
}

/// Shows what the snapshot is, but not its table and not the hasher, whose key is a secret.
impl<F: Viewed, B> fmt::Debug for View<F, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").field("info", &self.info).finish_non_exhaustive()
    }
}

// Lookups keep no state that a panic of a key or of the bytes could leave half changed.
impl<F: Viewed<Hasher: UnwindSafe>, B: UnwindSafe> UnwindSafe for View<F, B> {}
impl<F: Viewed<Hasher: RefUnwindSafe>, B: RefUnwindSafe> RefUnwindSafe for View<F, B> {}

/// Views.
impl<F, S> Loader<F, S> {
    /// A [`View`] of a snapshot, which is not loaded. The loader's schema and what it [expects](Self::expect_plan) are compared
    /// with the snapshot. The memory limit is not used, since nothing of the table's size is allocated.
    ///
    /// # Errors
    /// As for [`View::new`].
    pub fn view<B: AsRef<[u8]>>(self, bytes: B) -> Result<View<F, B>, LoadError>
    where
        F: Viewed<Hasher = S>,
        S: BuildHasher,
    {
        let (hasher, schema, expected) = self.into_parts();
        let snapshot = bytes.as_ref();
        let mut unread = snapshot;
        let available = Some(snapshot.len() as u64);
        let mut source = SnapshotSource::new(&mut unread, usize::MAX, available).expecting(expected);
        let schema = schema.name::<F::Key>();
        let Metadata { position, attachment } = source.header(F::KIND, &schema, probe(&hasher))?;
        let declared = F::declared(&mut source)?;
        let now = declared.now();
        let Declared { plan, clock_state, own: clock } = declared;
        source.expect_table(&plan)?;
        source.nothing_follows()?;
        // All of it is there.
        let (start, bytes_in_all) = (source.position(), source.bytes());
        let start = start as usize;
        let len = SnapshotWords::from(snapshot, start).get(plan.layout.buckets);
        check_clock(clock_state, len)?;
        // For the decode table, of as many bytes at most.
        let table = F::table(&plan).ok_or(LoadError::OutOfMemory { bytes: 256 << 10 })?;
        let schema = schema.into_owned();
        let info = SnapshotInfo {
            version: VERSION,
            plan,
            schema,
            position,
            attachment,
            now,
            bytes: bytes_in_all,
            len: Some(len),
        };
        Ok(View { bytes, start, info, table, clock, hasher })
    }
}

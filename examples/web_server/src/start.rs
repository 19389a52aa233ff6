//! From what is on the disk to filters that can be trusted, and back.
//!
//! The rule for revoked tokens: **a filter that might lack one is not used.** Whatever is wrong with the snapshot, the
//! filter is rebuilt from the store, which takes longer and is always right; if that can't be done, the server does not
//! start. Request identifiers are in no store, so what their snapshot does not bring back is gone, and the server says so.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use concurrent_cuckoo_filter::{
    BuildError, ConcurrentCuckooFilter, InsertBatchError, RotatingCuckooFilter, StableState,
};

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::snapshot::{self, Stamp, Unusable};
use crate::store::{self, Store};
use crate::writer::Revoked;

pub(crate) type Ids = RotatingCuckooFilter<str, StableState>;

/// Both filters, and where they are saved.
pub(crate) struct Filters {
    pub(crate) revoked: Arc<Revoked>,
    pub(crate) ids: Arc<Ids>,
    /// Since when request identifiers have been noted without a gap, in seconds since 1970.
    pub(crate) ids_known_since: u64,
    store: Arc<Store>,
    period: u64,
    revoked_file: PathBuf,
    ids_file: PathBuf,
}

impl Filters {
    /// Loads the snapshots in the data directory, or does without.
    pub(crate) fn start(arguments: &Arguments, key: [u8; 16], store: &Arc<Store>) -> Result<Self, Failure> {
        let hasher = StableState::with_key(key);
        let revoked_file = arguments.data.join("revoked.snapshot");
        let revoked = match load_revoked(&revoked_file, arguments, hasher.clone(), store) {
            Ok(revoked) => revoked,
            Err(unusable) => {
                eprintln!("revoked tokens: {}: {unusable}; rebuilding from the store", revoked_file.display());
                rebuild(arguments, hasher.clone(), store)?
            }
        };
        eprintln!("revoked tokens: {} of {} in the filter", revoked.len(), revoked.capacity());

        let ids_file = arguments.data.join("request-ids.snapshot");
        let known_since = store.ids_known_since()?;
        let (ids, ids_known_since) = match load_ids(&ids_file, arguments, hasher.clone(), store) {
            Ok(ids) => {
                if known_since.is_none() {
                    eprintln!(
                        "request identifiers: the server was cut off; those since the last snapshot pass once more"
                    );
                }
                (ids, known_since.unwrap_or_else(now))
            }
            Err(unusable) => {
                eprintln!(
                    "request identifiers: {}: {unusable}; those seen before now pass once more",
                    ids_file.display()
                );
                (new_ids(arguments, hasher).map_err(|error| Failure::Build("--ids and --ids-rate", error))?, now())
            }
        };
        let period = arguments.period();
        let (revoked, ids, store) = (Arc::new(revoked), Arc::new(ids), Arc::clone(store));
        let filters = Self { revoked, ids, ids_known_since, store, period, revoked_file, ids_file };
        filters.rotate();
        Ok(filters)
    }

    /// Lets the identifiers age: those whose time is over are forgotten. By the clock, so it does not matter how often or
    /// how regularly this is called, as long as that is more than once in a period.
    pub(crate) fn rotate(&self) {
        self.ids.advance_to(now() / self.period);
    }

    /// Notes that identifiers are taken from now on, which are lost if the server is cut off.
    pub(crate) fn begin(&self) -> Result<(), Failure> {
        Ok(self.store.begin(self.ids_known_since)?)
    }

    /// Saves both filters when they are no longer in use, and notes that it did.
    pub(crate) fn end(&self) -> Result<(), Failure> {
        self.save()?;
        Ok(self.store.ended_well()?)
    }

    /// Saves both filters, while they are in use. On a thread that may block.
    pub(crate) fn save(&self) -> Result<(), Failure> {
        // Before the filter is saved: what comes meanwhile is of the new epoch, and is added when it is loaded.
        let at = self.store.begin_epoch()?;
        let stamp = Stamp { store: self.store.id(), at };
        snapshot::write(&self.revoked_file, stamp, |to| self.revoked.save(to))
            .map_err(|error| Failure::file("save", &self.revoked_file, error))?;
        self.store.forget_before(at)?;

        let stamp = Stamp { at: self.period, ..stamp };
        snapshot::write(&self.ids_file, stamp, |to| self.ids.save(to))
            .map_err(|error| Failure::file("save", &self.ids_file, error))
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}

/// The filter as it was saved, and what was revoked since then.
fn load_revoked(file: &Path, arguments: &Arguments, hasher: StableState, store: &Store) -> Result<Revoked, Unusable> {
    let unfit = |why: String| Unusable::Unfit(why);
    let failed = |error: store::Error| Unusable::Unfit(error.to_string());
    // Built to see what is asked for now, and dropped, lest there be two of them.
    let shape = |filter: &Revoked| (filter.slots(), filter.fingerprint_bits(), filter.encoding());
    let wanted = shape(&new_revoked(arguments, hasher.clone()).map_err(|error| unfit(error.to_string()))?);
    let (at, filter) = snapshot::read(file, |stamp, from| {
        if stamp.store != store.id() {
            return Err(unfit("it belongs to another store".into()));
        }
        if stamp.at > store.epoch().map_err(failed)? {
            return Err(unfit("it is newer than the store".into()));
        }
        if stamp.at < store.oldest().map_err(failed)? {
            return Err(unfit("it is so old that the store can't say what has come since".into()));
        }
        let filter = Revoked::load(from, hasher, arguments.snapshot_limit()).map_err(Unusable::Filter)?;
        Ok((stamp.at, filter))
    })?;

    if shape(&filter) != wanted {
        return Err(unfit(format!(
            "it is made for {} tokens at a rate of {:e}, and --capacity and --rate ask for another",
            filter.capacity(),
            filter.max_false_positive_rate()
        )));
    }

    // Some of these may be in already. Then they are in twice, and once for good when they are reinstated, which costs
    // room and questions to the store, but no answer is wrong. `insert_if_absent` would save that room, and could take
    // another token for this one, with which it would then disappear.
    let mut since = 0;
    store
        .for_recent(at, |tokens| insert(&filter, &mut tokens.inspect(|_| since += 1)))
        .map_err(failed)?
        .map_err(|error| unfit(format!("the {since} tokens revoked since it was saved don't go in: {error}")))?;

    // Tokens that were reinstated while it was saved, or after, may be in still; removing them might remove others.
    let (len, tokens) = (filter.len() as u64, store.len().map_err(failed)?);
    if len < tokens {
        return Err(unfit(format!("it has {len} tokens, and the store has {tokens}")));
    }
    if len - tokens > filter.capacity() as u64 / 50 {
        return Err(unfit(format!("{} of its {len} tokens are no longer revoked", len - tokens)));
    }
    eprintln!("revoked tokens: loaded from {}, and {since} revoked since from the store", file.display());
    Ok(filter)
}

fn rebuild(arguments: &Arguments, hasher: StableState, store: &Store) -> Result<Revoked, Failure> {
    let filter = new_revoked(arguments, hasher).map_err(|error| Failure::Build("--capacity and --rate", error))?;
    match store.for_all(|tokens| insert(&filter, tokens))? {
        Ok(()) => Ok(filter),
        Err(Interrupted::Store(error)) => Err(error.into()),
        Err(Interrupted::Filter(error)) => Err(Failure::TooSmall { tokens: store.len()?, error: error.error }),
    }
}

/// Inserts tokens in batches, without having them all in memory.
fn insert(filter: &Revoked, tokens: &mut dyn Iterator<Item = store::Result<String>>) -> Result<(), Interrupted> {
    let mut failed = None;
    let hashes =
        tokens.map_while(|token| token.map(|token| filter.hash_one(&*token)).map_err(|e| failed = Some(e)).ok());
    filter.insert_hash_batch(hashes).map_err(Interrupted::Filter)?;
    failed.map_or(Ok(()), |error| Err(Interrupted::Store(error)))
}

enum Interrupted {
    Store(store::Error),
    Filter(InsertBatchError),
}

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Store(error) => write!(f, "{error}"),
            Self::Filter(error) => write!(f, "{error}"),
        }
    }
}

fn new_revoked(arguments: &Arguments, hasher: StableState) -> Result<Revoked, BuildError> {
    ConcurrentCuckooFilter::builder()
        .capacity(arguments.capacity)
        .false_positive_rate(arguments.rate)
        .hasher(hasher)
        .build()
}

/// The identifiers as they were saved, with the time they had left.
fn load_ids(file: &Path, arguments: &Arguments, hasher: StableState, store: &Store) -> Result<Ids, Unusable> {
    let unfit = |why: &str| Unusable::Unfit(why.into());
    let shape = |ids: &Ids| (ids.generations(), ids.capacity(), ids.memory_usage());
    let wanted = shape(&new_ids(arguments, hasher.clone()).map_err(|error| unfit(&error.to_string()))?);
    let ids = snapshot::read(file, |stamp, from| {
        if stamp.store != store.id() {
            return Err(unfit("it belongs to another store"));
        }
        // Generations are numbered by the time divided by the period: another period has other numbers.
        if stamp.at != arguments.period() {
            return Err(unfit("--window and --generations were different"));
        }
        Ids::load(from, hasher, arguments.snapshot_limit()).map_err(Unusable::Filter)
    })?;
    if shape(&ids) != wanted {
        return Err(unfit("--ids, --ids-rate or --generations were different"));
    }
    Ok(ids)
}

fn new_ids(arguments: &Arguments, hasher: StableState) -> Result<Ids, BuildError> {
    RotatingCuckooFilter::builder()
        .capacity(arguments.ids)
        .generations(arguments.generations)
        .false_positive_rate(arguments.ids_rate)
        .hasher(hasher)
        .build()
}

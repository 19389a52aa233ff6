//! Loads filters that can be trusted from the disk, and saves them.
//!
//! The rule for revoked tokens: **a filter that might lack one is not used.** If anything is wrong with the snapshot,
//! the filter is rebuilt from the store, which takes longer and is always right. If that fails, the server does not
//! start. Request identifiers are in no store. Those that their snapshot does not have are lost, and the server says
//! so.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use concurrent_cuckoo_filter::{BuildError, InsertBatchError, InsertError, Loader, RotatingCuckooFilter, StableState};
use example_support::leftovers::delete_partial_files_of;

use crate::arguments::Arguments;
use crate::clock::{Clock, Consequences};
use crate::failure::Failure;
use crate::revoked::{self, Filter, Revoked};
use crate::snapshot::{self, Unusable};
use crate::store::{self, Store};
use crate::wall_clock::WallClock;

/// Not an `ExpiringCuckooFilter`: all identifiers live equally long, none is removed, and each request adds one. With
/// the default options, generations take 16 MiB for them where entries with ends take 27, and a new identifier takes
/// about 30 % less time.
pub(crate) type Ids = RotatingCuckooFilter<str, StableState>;

/// What the keys of each filter are, for its snapshots. Change these if tokens or identifiers are normalized in
/// another way, or if position or attachment change.
const REVOKED_SCHEMA: &str = "web-server: revoked tokens, version 2";
const IDS_SCHEMA: &str = "web-server: request identifiers, version 1";

const WRONG_CLOCK: Consequences = Consequences {
    behind: "no request identifier expires, and there may be no room for new ones; if it will not catch up, restart \
             the server without request-ids.snapshot",
    jump: "all request identifiers seen before have expired; that is right if the server was off or asleep for so \
           long, and otherwise the clock is wrong",
};

/// Both filters, and the files of their snapshots.
pub(crate) struct Filters {
    pub(crate) revoked: Arc<Revoked>,
    pub(crate) ids: Arc<Ids>,
    /// Since when request identifiers have been recorded without a gap, in seconds since 1970.
    pub(crate) ids_known_since: u64,
    pub(crate) wall_clock: WallClock,
    store: Arc<Store>,
    period: u64,
    clock: Mutex<Clock>,
    revoked_file: PathBuf,
    ids_file: PathBuf,
}

impl Filters {
    /// Loads the snapshots in the data directory, or starts without them.
    pub(crate) fn start(arguments: &Arguments, key: [u8; 16], store: &Arc<Store>) -> Result<Self, Failure> {
        let hasher = StableState::with_key(key);
        let wall_clock = arguments.wall_clock()?;
        let revoked_file = arguments.data.join("revoked.snapshot");
        let ids_file = arguments.data.join("request-ids.snapshot");
        // No other server is saving to these files, because this one has locked the store.
        delete_partial_files_of(&revoked_file);
        delete_partial_files_of(&ids_file);
        let revoked = match load_revoked(&revoked_file, arguments, hasher.clone(), store, &wall_clock) {
            Ok(revoked) => revoked,
            Err(unusable) => {
                eprintln!("revoked tokens: {}: {unusable}; rebuilding from the store", revoked_file.display());
                rebuild(arguments, hasher.clone(), store, &wall_clock)?
            }
        };
        eprintln!("revoked tokens: {} of {} in the filter", revoked.live_len(), revoked.filter.capacity());

        let known_since = store.ids_known_since()?;
        let (ids, ids_known_since) = match load_ids(&ids_file, arguments, hasher.clone(), store) {
            Ok(ids) => {
                if known_since.is_none() {
                    eprintln!(
                        "request identifiers: the server did not end well; those since the last snapshot pass once more"
                    );
                }
                (ids, known_since.unwrap_or_else(|| wall_clock.now()))
            }
            Err(unusable) => {
                eprintln!(
                    "request identifiers: {}: {unusable}; those seen before now pass once more",
                    ids_file.display()
                );
                let ids = new_ids(arguments, hasher).map_err(|error| Failure::Build("--ids and --ids-rate", error))?;
                (ids, wall_clock.now())
            }
        };
        let period = arguments.period();
        let clock = Mutex::new(Clock::new(period, ids.generations() as u64, WRONG_CLOCK));
        let (revoked, ids, store) = (Arc::new(revoked), Arc::new(ids), Arc::clone(store));
        let filters = Self { revoked, ids, ids_known_since, wall_clock, store, period, clock, revoked_file, ids_file };
        filters.advance();
        Ok(filters)
    }

    /// Tells both filters the time, so that they forget what has expired. The time since 1970 decides. So it does not
    /// matter how regularly this is called, and a restart changes nothing.
    pub(crate) fn advance(&self) {
        self.revoked.advance();
        let answer = self.ids.advance_to(self.wall_clock.now() / self.period);
        let mut clock = self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(warning) = clock.warning(answer, Instant::now()) {
            eprintln!("warning: {warning}");
        }
    }

    /// Records that the server takes identifiers from now on. They are lost if it does not end well.
    pub(crate) fn begin(&self) -> Result<(), Failure> {
        Ok(self.store.begin(self.ids_known_since)?)
    }

    /// Saves both filters when they are no longer in use, and records that the server has ended well.
    pub(crate) fn end(&self) -> Result<(), Failure> {
        self.save()?;
        Ok(self.store.ended_well()?)
    }

    /// Saves both filters while they are in use. Call this on a thread that may block.
    pub(crate) fn save(&self) -> Result<(), Failure> {
        let id = self.store.id();
        // Before the moment of the snapshot. What is revoked meanwhile belongs to the new epoch, and is added when
        // the snapshot is loaded.
        let epoch = self.store.begin_epoch()?;
        self.revoked
            .filter
            .begin_save()
            .and_then(|save| {
                save.position(epoch).attachment(snapshot::attachment(&[id])).write_to_path(&self.revoked_file)
            })
            .map_err(|error| Failure::file("save", &self.revoked_file, error))?;
        self.store.forget_before(epoch)?;

        self.ids
            .begin_save()
            .and_then(|save| save.attachment(snapshot::attachment(&[id, self.period])).write_to_path(&self.ids_file))
            .map_err(|error| Failure::file("save", &self.ids_file, error))
    }
}

/// The filter as it was saved, without the tokens that have expired since then, and with those that were revoked
/// since then.
fn load_revoked(
    file: &Path,
    arguments: &Arguments,
    hasher: StableState,
    store: &Store,
    wall_clock: &WallClock,
) -> Result<Revoked, Unusable> {
    let unfit = |why: String| Unusable::Unfit(why);
    let failed = |error: store::Error| Unusable::Unfit(error.to_string());
    // Built to see what the options ask for, and dropped at once, so that there are never two of them.
    let shape = |filter: &Filter| {
        let table = (filter.slots(), filter.fingerprint_bits(), filter.encoding());
        (table, filter.longest_lifetime(), filter.resolution())
    };
    let wanted = shape(&new_revoked(arguments, hasher.clone()).map_err(|error| unfit(error.to_string()))?);
    let loader = Loader::<Filter, _>::new(hasher, arguments.snapshot_limit()).schema(REVOKED_SCHEMA);
    let loaded = loader.read_path(file)?;
    // The position is the epoch that began just before the save. The filter has what was revoked in earlier epochs.
    let (Some(epoch), Some([id])) = (loaded.position, snapshot::numbers(&loaded.attachment)) else {
        return Err(unfit("it does not say of which store and epoch it is".into()));
    };
    if id != store.id() {
        return Err(unfit("it belongs to another store".into()));
    }
    if epoch > store.epoch().map_err(failed)? {
        return Err(unfit("it is newer than the store".into()));
    }
    if epoch < store.oldest().map_err(failed)? {
        return Err(unfit("it is so old that the store can't say what has come since".into()));
    }
    let filter = loaded.filter;

    if shape(&filter) != wanted {
        return Err(unfit(format!(
            "it is made for {} tokens at a rate of {:e}, each for {} ticks of {:?}, and the options ask for another",
            filter.capacity(),
            filter.max_false_positive_rate(),
            filter.longest_lifetime(),
            filter.resolution().unwrap_or_default()
        )));
    }
    let resolution = arguments.resolution();
    if revoked::is_ahead_of(&filter, wall_clock.now(), resolution) {
        return Err(unfit("the clock was ahead when it was saved, so it may lack tokens that have not expired".into()));
    }
    let revoked = Revoked::new(filter, resolution, wall_clock.clone());

    // A token may be in already: if it was revoked between the beginning of the epoch and the moment of the snapshot,
    // or if it was reinstated and revoked again since. Then it is in twice, and one copy stays when it is reinstated.
    // That costs room and questions to the store, but no answer is wrong. `insert_if_absent` would save that room.
    // But it could take another token for this one, and this one would disappear with the other.
    let mut since = 0;
    store
        .for_recent(epoch, |tokens| insert(&revoked, &mut tokens.inspect(|_| since += 1)))
        .map_err(failed)?
        .map_err(|error| unfit(format!("the {since} tokens revoked since it was saved don't go in: {error}")))?;

    // The filter may still have tokens that were reinstated since. Removing them might remove others.
    let (len, tokens) = (revoked.live_len() as u64, store.count_until(revoked.earliest_live()).map_err(failed)?);
    if len < tokens {
        return Err(unfit(format!("it has {len} tokens, and the store has {tokens}")));
    }
    if len - tokens > revoked.filter.capacity() as u64 / 50 {
        return Err(unfit(format!("{} of its {len} tokens are no longer revoked", len - tokens)));
    }
    eprintln!("revoked tokens: loaded from {}, and {since} revoked since from the store", file.display());
    Ok(revoked)
}

fn rebuild(
    arguments: &Arguments,
    hasher: StableState,
    store: &Store,
    wall_clock: &WallClock,
) -> Result<Revoked, Failure> {
    let options = "--capacity, --rate, --longest-lifetime, --leeway and --ticks";
    let filter = new_revoked(arguments, hasher).map_err(|error| Failure::Build(options, error))?;
    let revoked = Revoked::new(filter, arguments.resolution(), wall_clock.clone());
    match store.for_all(|tokens| insert(&revoked, tokens))? {
        Ok(()) => Ok(revoked),
        Err(Interrupted::Store(error)) => Err(error.into()),
        Err(Interrupted::Filter(InsertBatchError {
            error: InsertError::LifetimeTooLong { expires_at, now, .. },
            ..
        })) => Err(Failure::TooShort { needed: (expires_at - now).saturating_mul(arguments.resolution()) }),
        Err(Interrupted::Filter(error)) => Err(Failure::TooSmall { tokens: store.len()?, error: error.error }),
    }
}

/// Inserts tokens, each with the time until which it is revoked. Expired tokens are left out.
fn insert(
    revoked: &Revoked,
    tokens: &mut dyn Iterator<Item = store::Result<(String, u64)>>,
) -> Result<(), Interrupted> {
    let mut failed = None;
    let tokens = tokens.map_while(|token| token.map_err(|error| failed = Some(error)).ok());
    revoked.insert_all(tokens).map_err(Interrupted::Filter)?;
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

fn new_revoked(arguments: &Arguments, hasher: StableState) -> Result<Filter, BuildError> {
    let (longest, resolution) = (arguments.longest_in_filter(), arguments.resolution());
    Filter::builder_with_hasher(hasher)
        .capacity(arguments.capacity)
        .lifetime(Duration::from_secs(longest), Duration::from_secs(resolution))
        .false_positive_rate(arguments.rate)
        .schema(REVOKED_SCHEMA)
        .build()
}

/// The identifiers as they were saved, with their remaining time.
fn load_ids(file: &Path, arguments: &Arguments, hasher: StableState, store: &Store) -> Result<Ids, Unusable> {
    let unfit = |why: &str| Unusable::Unfit(why.into());
    let shape = |ids: &Ids| (ids.generations(), ids.capacity(), ids.memory_usage());
    let wanted = shape(&new_ids(arguments, hasher.clone()).map_err(|error| unfit(&error.to_string()))?);
    let loader = Loader::<Ids, _>::new(hasher, arguments.snapshot_limit()).schema(IDS_SCHEMA);
    let loaded = loader.read_path(file)?;
    let Some([id, period]) = snapshot::numbers(&loaded.attachment) else {
        return Err(unfit("it does not say of which store and period it is"));
    };
    if id != store.id() {
        return Err(unfit("it belongs to another store"));
    }
    // A tick is the time divided by the period. So another period has other ticks.
    if period != arguments.period() {
        return Err(unfit("--window and --generations were different"));
    }
    let ids = loaded.filter;
    if shape(&ids) != wanted {
        return Err(unfit("--ids, --ids-rate or --generations were different"));
    }
    Ok(ids)
}

fn new_ids(arguments: &Arguments, hasher: StableState) -> Result<Ids, BuildError> {
    Ids::builder_with_hasher(hasher)
        .generation_capacity(arguments.ids)
        .generations(arguments.generations)
        .false_positive_rate(arguments.ids_rate)
        .schema(IDS_SCHEMA)
        .build()
}

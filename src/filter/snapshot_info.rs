//! The metadata of a snapshot, without loading it.

use std::io::Read;
use std::path::Path;

use crate::error::kind::FilterKind;
use crate::error::load::LoadError;
use crate::error::load_path::LoadPathError;
use crate::growth::growing_table::GrowingTable;
use crate::snapshot::file;
use crate::snapshot::format::{Declared, SnapshotCore, check_clock};
use crate::snapshot::parts::VERSION;
use crate::snapshot::source::{Metadata, SnapshotSource};
use crate::table::by_shape::{ExpiringTable, FilterTable, MapletTable};
use crate::table::expiring::clock::ClockState;
use crate::table::filter_plan::FilterPlan;
use crate::table::limiter_table::LimiterTable;
use crate::table::recent_table::RecentTable;
use crate::word::tick::Tick;

/// The metadata of a snapshot: its filter, its keys, its position. Needs the feature `snapshot`.
///
/// [`read`](Self::read) reads the header only. [`verify`](Self::verify) reads all, and checks all that loading checks
/// except hasher, schema and memory. Both need neither the hasher nor the type of the keys. `cargo run --features
/// snapshot --example inspect -- FILE` prints it.
///
/// ```
/// use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, FilterKind, SnapshotInfo};
///
/// let revoked = ConcurrentCuckooFilter::<str>::builder().capacity(1000).schema("token, version 2").build()?;
/// revoked.insert("token-17")?;
/// let mut snapshot = Vec::new(); // or a file
/// revoked.begin_save()?.position(17).write_to(&mut snapshot)?;
///
/// let info = SnapshotInfo::read(&snapshot[..])?;
/// assert_eq!((info.plan.filter, info.plan.capacity), (FilterKind::Concurrent, revoked.capacity()));
/// assert_eq!((&*info.schema, info.position), ("token, version 2", Some(17)));
/// assert_eq!(SnapshotInfo::verify(&snapshot[..])?.len, Some(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SnapshotInfo {
    /// The version of the format.
    pub version: u16,
    /// The filter that would be loaded: its type, capacity, layout, memory and settings.
    pub plan: FilterPlan,
    /// The [schema](crate::ConcurrentBuilder::schema): what the keys are.
    pub schema: String,
    /// The [position](crate::Save::position), if there is one.
    pub position: Option<u64>,
    /// The [attachment](crate::Save::attachment), empty if there is none.
    pub attachment: Vec<u8>,
    /// The tick of an `ExpiringCuckooFilter`'s clock, if it had been set. `None` for other filters.
    pub now: Option<Tick>,
    /// How many bytes the whole snapshot has.
    pub bytes: u64,
    /// How many keys there are, as the filter's `len` counts them. The number is at the end of a snapshot, so
    /// [`read`](Self::read) leaves it out. [`verify`](Self::verify) counts the keys, and a [`View`](crate::View) has
    /// the number that the snapshot declares.
    pub len: Option<u64>,
}

impl SnapshotInfo {
    /// Reads the header of a snapshot. The rest is neither read nor checked.
    ///
    /// Cost: it reads about 50 bytes, the schema and the attachment, in small pieces.
    ///
    /// # Errors
    /// The [`LoadError`] that loading would return.
    pub fn read(mut from: impl Read) -> Result<Self, LoadError> {
        Self::of(SnapshotSource::new(&mut from, usize::MAX, None), false)
    }

    /// Reads the header of the snapshot in a file, and checks the length of the file.
    ///
    /// # Errors
    /// A [`LoadPathError`] with the path and the reason, which is as for [`read`](Self::read). A file that is too short is
    /// [`Truncated`](crate::SnapshotDamage::Truncated), and one that is too long has
    /// [`TrailingBytes`](crate::SnapshotDamage::TrailingBytes).
    pub fn read_from_path(path: impl AsRef<Path>) -> Result<Self, LoadPathError> {
        file::read(path.as_ref(), |from, available| Self::of(SnapshotSource::new(from, usize::MAX, available), false))
    }

    /// Reads a whole snapshot, and checks its checksums, its buckets and the number of its keys. A snapshot that passes
    /// can be loaded with the right hasher and schema, if there is enough memory.
    ///
    /// It reads exactly the snapshot. In a buffer that must hold nothing else, compare [`bytes`](Self::bytes) with its
    /// length. [`verify_from_path`](Self::verify_from_path) does that for a file.
    ///
    /// Cost: one pass in pieces of 8 KiB, and about 20 KiB of memory (beside the attachment, and the decode table of the
    /// layout, which filters share).
    ///
    /// # Errors
    /// Those of [`read`](Self::read), and those of loading.
    pub fn verify(mut from: impl Read) -> Result<Self, LoadError> {
        Self::of(SnapshotSource::new(&mut from, usize::MAX, None), true)
    }

    /// [Verifies](Self::verify) the snapshot in a file. Nothing may follow it.
    ///
    /// # Errors
    /// A [`LoadPathError`] with the path and the reason, which is as for [`verify`](Self::verify) and
    /// [`read_from_path`](Self::read_from_path).
    pub fn verify_from_path(path: impl AsRef<Path>) -> Result<Self, LoadPathError> {
        file::read(path.as_ref(), |from, available| Self::of(SnapshotSource::new(from, usize::MAX, available), true))
    }

    fn of(mut source: SnapshotSource<'_>, verify: bool) -> Result<Self, LoadError> {
        let header = source.any_header()?;
        let kind = header.filter_kind()?;
        let schema = String::from_utf8_lossy(header.schema()).into_owned();
        let Metadata { position, attachment } = source.metadata(&header)?;
        let Declared { plan, clock_state, own: now } = match kind {
            FilterKind::Concurrent => read_declared::<FilterTable>(&mut source)?,
            FilterKind::Growable => read_declared::<GrowingTable>(&mut source)?,
            FilterKind::Maplet => read_declared::<MapletTable>(&mut source)?,
            FilterKind::Expiring => read_declared::<ExpiringTable>(&mut source)?,
            FilterKind::Recent => read_declared::<RecentTable>(&mut source)?,
            FilterKind::Limiter => read_declared::<LimiterTable>(&mut source)?,
        };
        source.expect_table(&plan)?;
        source.nothing_follows()?;
        // The ticks of a filter that drives its own clock are nobody's.
        let now = now.filter(|_| kind == FilterKind::Expiring);
        let bytes = source.bytes();
        let len = verify.then(|| verified(source, &plan, clock_state)).transpose()?;
        Ok(Self { version: VERSION, plan, schema, position, attachment, now, bytes, len })
    }
}

/// What the snapshot declares of a filter with this core, and the tick of its clock.
fn read_declared<C: SnapshotCore>(source: &mut SnapshotSource<'_>) -> Result<Declared<Option<Tick>>, LoadError> {
    let declared = C::read_declared(source)?;
    Ok(Declared { plan: declared.plan, clock_state: declared.clock_state, own: declared.now() })
}

/// How many keys there are, in a snapshot whose words have yet to be read.
fn verified(
    mut source: SnapshotSource<'_>,
    plan: &FilterPlan,
    clock_state: Option<ClockState>,
) -> Result<u64, LoadError> {
    let len = source.words(plan, clock_state, &mut |_, _| ())?;
    check_clock(clock_state, len)?;
    source.end()?;
    Ok(len)
}

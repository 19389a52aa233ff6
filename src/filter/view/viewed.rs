//! What differs between the filters whose snapshots can be viewed.

use core::hash::BuildHasher;

use crate::error::kind::FilterKind;
use crate::error::load::LoadError;
use crate::filter::concurrent::filter::ConcurrentCuckooFilter;
use crate::filter::expiring::filter::ExpiringCuckooFilter;
use crate::filter::growable::filter::GrowableCuckooFilter;
use crate::filter::maplet::filter::CuckooMaplet;
use crate::filter::view::fixed::{FilterView, PayloadView};
use crate::filter::view::growing::GrowingView;
use crate::filter::view::words::ViewTable;
use crate::growth::growing_table::GrowingTable;
use crate::snapshot::format::{Declared, SnapshotCore};
use crate::snapshot::source::SnapshotSource;
use crate::table::by_shape::{ExpiringTable, FilterTable, MapletTable};
use crate::table::expiring::clock::{Clock, ClockState};
use crate::table::filter_plan::FilterPlan;
use crate::word::payloads::Payloads;
use crate::word::ring::{Reading, Ring};
use crate::word::tick::Tick;

/// A filter whose snapshots can be [viewed](crate::View). All filters of this crate are, with any hasher, except the
/// [`RecentCuckooFilter`](crate::RecentCuckooFilter) and the [`CuckooRateLimiter`](crate::CuckooRateLimiter). There is
/// nothing to implement: it serves as a bound. Needs the feature `snapshot`.
pub trait Viewed {
    /// The type of the keys.
    type Key: ?Sized;
    /// The hasher.
    type Hasher: BuildHasher;
    /// What a lookup is given besides the key: the [`Tick`] at which the entry must be live, or `()` for filters whose
    /// entries do not expire.
    type Time;
    #[doc(hidden)]
    type Clock;
    #[doc(hidden)]
    type Table: ViewTable;
    #[doc(hidden)]
    const KIND: FilterKind;

    /// Reads and checks all that comes between the header and the buckets.
    #[doc(hidden)]
    fn declared(source: &mut SnapshotSource<'_>) -> Result<Declared<Self::Clock>, LoadError>;

    /// Lookups in the table of such a filter. `None` if there is no memory for a decode table.
    #[doc(hidden)]
    fn table(plan: &FilterPlan) -> Option<Self::Table>;
}

impl<T: ?Sized, S: BuildHasher> Viewed for ConcurrentCuckooFilter<T, S> {
    type Key = T;
    type Hasher = S;
    type Time = ();
    type Clock = ();
    type Table = FilterView;

    const KIND: FilterKind = FilterKind::Concurrent;

    fn declared(source: &mut SnapshotSource<'_>) -> Result<Declared<()>, LoadError> {
        let Declared { plan, clock_state, .. } = <FilterTable as SnapshotCore>::read_declared(source)?;
        Ok(Declared { plan, clock_state, own: () })
    }

    fn table(plan: &FilterPlan) -> Option<FilterView> {
        FilterView::new(plan.layout.shape(), plan.layout.buckets)
    }
}

impl<T: ?Sized, S: BuildHasher> Viewed for CuckooMaplet<T, S> {
    type Key = T;
    type Hasher = S;
    type Time = ();
    type Clock = ();
    type Table = PayloadView;

    const KIND: FilterKind = FilterKind::Maplet;

    fn declared(source: &mut SnapshotSource<'_>) -> Result<Declared<()>, LoadError> {
        let Declared { plan, clock_state, .. } = <MapletTable as SnapshotCore>::read_declared(source)?;
        Ok(Declared { plan, clock_state, own: () })
    }

    fn table(plan: &FilterPlan) -> Option<PayloadView> {
        PayloadView::new(plan.layout.shape(), plan.layout.buckets)
    }
}

impl<T: ?Sized, S: BuildHasher> Viewed for GrowableCuckooFilter<T, S> {
    type Key = T;
    type Hasher = S;
    type Time = ();
    type Clock = ();
    type Table = GrowingView;

    const KIND: FilterKind = FilterKind::Growable;

    fn declared(source: &mut SnapshotSource<'_>) -> Result<Declared<()>, LoadError> {
        let Declared { plan, clock_state, .. } = <GrowingTable as SnapshotCore>::read_declared(source)?;
        Ok(Declared { plan, clock_state, own: () })
    }

    fn table(plan: &FilterPlan) -> Option<GrowingView> {
        let (classes, encoding) = plan.classes?;
        GrowingView::new(classes, encoding, plan.layout.buckets)
    }
}

impl<T: ?Sized, S: BuildHasher> Viewed for ExpiringCuckooFilter<T, S> {
    type Key = T;
    type Hasher = S;
    type Time = Tick;
    type Clock = ViewClock;
    type Table = PayloadView;

    const KIND: FilterKind = FilterKind::Expiring;

    fn declared(source: &mut SnapshotSource<'_>) -> Result<Declared<ViewClock>, LoadError> {
        let Declared { plan, clock_state, own } = <ExpiringTable as SnapshotCore>::read_declared(source)?;
        Ok(Declared { plan, clock_state, own: ViewClock::of(&own.1) })
    }

    fn table(plan: &FilterPlan) -> Option<PayloadView> {
        PayloadView::new(plan.layout.shape(), plan.layout.buckets)
    }
}

/// The clock of a view.
#[allow(unreachable_pub, reason = "a public trait that nobody can name has it")]
#[derive(Clone, Copy, Debug)]
pub struct ViewClock {
    ring: Ring,
    clock_state: ClockState,
}

impl ViewClock {
    fn of(clock: &Clock) -> Self {
        Self { ring: clock.ring(), clock_state: clock.state() }
    }

    /// The ends of the entries that live at this tick of the caller, or at that of the snapshot if this is earlier.
    /// `None` if there are none.
    #[inline]
    pub(super) fn live_at(self, tick: u64) -> Option<Payloads> {
        let ClockState { now, reading, ahead, .. } = self.clock_state;
        // After a whole round nothing lives, however many ticks have passed.
        let (ring, passed) = (self.ring, tick.saturating_sub(now?).saturating_sub(ahead).min(self.ring.len()));
        ring.live(Reading::new(ring, reading.now() + passed, reading.lag() + passed))
    }
}

//! A thread that stops within a lookup, for good, delays the freeing of the table that it reads, and of no other. So does
//! a save.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::thread;

use ccf_steps::GrowableCuckooFilter;
use ccf_steps::model::before_each_step;

#[allow(unsafe_code, unreachable_pub, reason = "an allocator cannot be written without it")]
#[path = "../../fuzz/counting.rs"]
mod counting;

type Filter = GrowableCuckooFilter<u64>;

const KEYS: u64 = 100;
const SPIKE: usize = 100_000;
const ABSENT: u64 = u64::MAX;

fn filter() -> Filter {
    let filter = Filter::builder().capacity(100).max_capacity(2 * SPIKE).build().expect("valid");
    (0..KEYS).for_each(|key| filter.insert(&key).expect("there is room"));
    filter
}

/// The filter grows and shrinks several times. All is right meanwhile. Returns the memory that is in use then.
fn spikes(filter: &Filter) -> usize {
    for _ in 0..5 {
        filter.reserve(SPIKE).expect("there is memory");
        assert!((0..KEYS).all(|key| filter.contains(&key) && filter.remove(&key)), "a present key was missed");
        (0..KEYS).for_each(|key| filter.insert(&key).expect("there is room"));
        filter.shrink_to_fit();
        assert_eq!((filter.len(), filter.tables()), (KEYS as usize, 1));
        assert!((0..KEYS).all(|key| filter.contains(&key)) && !filter.contains(&ABSENT));
    }
    counting::in_use()
}

/// How many steps a lookup takes.
fn steps(filter: &Filter) -> usize {
    let steps = Rc::new(Cell::new(0));
    let counter = Rc::clone(&steps);
    before_each_step(Some(Rc::new(move |_| counter.set(counter.get() + 1))));
    assert!(!filter.contains(&ABSENT));
    before_each_step(None);
    steps.get()
}

/// Stops a lookup before its `nth` step. Checks what is freed meanwhile, and after it has ended.
fn stops_before(nth: usize, filter: &Filter, bound: usize) {
    let ((stops, stopped), (lets_go, let_go)) = (channel(), channel::<()>());
    thread::scope(|scope| {
        scope.spawn(move || {
            let taken = Cell::new(0);
            before_each_step(Some(Rc::new(move |_| {
                if taken.replace(taken.get() + 1) == nth {
                    stops.send(()).expect("the other thread waits for this");
                    // Until the other end is dropped.
                    _ = let_go.recv();
                }
            })));
            assert!(!filter.contains(&ABSENT));
            before_each_step(None);
        });
        stopped.recv().expect("the lookup has this many steps");
        let in_use = spikes(filter);
        assert!(in_use <= bound, "before step {nth}: {in_use} bytes are in use, more than {bound}");
        drop(lets_go);
    });
}

/// All in one test, since it counts the bytes of the process.
#[test]
fn what_reads_a_table_delays_its_freeing_and_of_no_other() {
    let filter = filter();
    let small = spikes(&filter);
    filter.reserve(SPIKE).expect("there is memory");
    let large = counting::in_use() - small;
    for nth in 0..steps(&filter) {
        // It reads the small table.
        filter.shrink_to_fit();
        stops_before(nth, &filter, small + large / 4);
        // It reads the large one.
        filter.reserve(SPIKE).expect("there is memory");
        stops_before(nth, &filter, small + large + large / 4);
        assert!(spikes(&filter) <= small + large / 100, "after the end of the lookup all is freed");
    }
    let save = filter.begin_save().expect("there is memory");
    let in_use = spikes(&filter);
    assert!(in_use <= small + large / 4, "amid a save {in_use} bytes are in use, {small} before");
    let mut bytes = Vec::new();
    save.write_to(&mut bytes).expect("there is memory");
    let loaded = Filter::load(&bytes[..], filter.hasher().clone(), usize::MAX).expect("it was just saved");
    assert!((0..KEYS).all(|key| loaded.contains(&key)) && loaded.len() == KEYS as usize);
    drop((bytes, loaded));
    assert!(spikes(&filter) <= small + large / 100, "after the end of the save all is freed");
}

//! The figures on the page for Prometheus go on when a filter takes the place of another.

use std::sync::{Arc, RwLock};

use concurrent_cuckoo_filter::ConcurrentCuckooFilter;
use metrics_exporter_prometheus::PrometheusBuilder;
use web_server::figures::Figures;

type Filter = ConcurrentCuckooFilter<u64>;

/// A filter that has refused this many inserts, for want of room.
fn that_has_refused(refused: u64) -> Arc<Filter> {
    let filter = Filter::with_capacity(100);
    while filter.stats().inserts_refused < refused {
        let _ = filter.insert(&7);
    }
    Arc::new(filter)
}

#[test]
fn after_a_swap_the_counters_go_on_and_the_gauges_are_those_of_the_new_filter() {
    let current = RwLock::new(that_has_refused(5));
    let recorder = PrometheusBuilder::new().build_recorder();
    // Labels that are made at run time.
    let [figures, others] = [3, 4].map(|tenant| Figures::new(format!("tenant {tenant}")));
    let figure = |name: &str, tenant: u32| -> u64 {
        metrics::with_local_recorder(&recorder, || {
            figures.record(|| current.read().unwrap().stats());
            others.record(|| that_has_refused(0).stats());
        });
        let (page, name) = (recorder.handle().render(), format!("cuckoo_filter_{name}{{filter=\"tenant {tenant}\"}} "));
        page.lines().find_map(|line| line.strip_prefix(&name)).expect(&page).parse().unwrap()
    };
    let refused = "inserts_refused_total";
    assert_eq!([figure(refused, 3), figure(refused, 3), figure(refused, 4)], [5, 5, 0]);
    // Fewer than the filter before it, as many, and more.
    for (refused_by_new, expected) in [(1, 6), (1, 7), (50, 57), (0, 57)] {
        let new = that_has_refused(refused_by_new);
        let len = new.len() as u64;
        *current.write().unwrap() = new;
        assert_eq!([figure(refused, 3), figure(refused, 3), figure("len", 3)], [expected, expected, len]);
    }
    while current.read().unwrap().insert(&7).is_ok() {}
    assert_eq!([figure(refused, 3), figure(refused, 4)], [58, 0]);
}

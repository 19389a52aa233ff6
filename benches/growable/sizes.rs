//! The memory and the false-positive rate of a filter at each of its sizes.

use crate::filters::{Growable, builder, fill};
use crate::support::keys::{ABSENT, key};

fn bits_a_key(filter: &Growable) -> f64 {
    filter.memory_usage() as f64 * 8.0 / filter.len() as f64
}

/// How many of this many absent keys are found.
fn found(filter: &Growable, absent: u64) -> usize {
    let mut found = Vec::with_capacity(1024);
    let mut of = |start: u64| {
        let keys: Vec<u64> = (start..start + 1024).map(key).collect();
        found.clear();
        filter.contains_batch(&keys, &mut found);
        found.iter().filter(|&&found| found).count()
    };
    (ABSENT..ABSENT + absent).step_by(1024).map(&mut of).sum()
}

/// From the first size to one that holds this many keys.
pub(crate) fn table(keys: u64, absent: u64) -> Vec<Vec<String>> {
    let filter: Growable = builder().build().expect("a valid filter");
    let head = [
        "capacity",
        "table, KiB",
        "slots a bucket",
        "bits a key, just doubled",
        "when full",
        "as it begins to double",
        "rate when full, measured, %",
        "with every slot taken, computed, %",
    ];
    let mut rows = vec![head.map(String::from).to_vec()];
    let (mut len, mut just_doubled, mut table) = (0, None, 0);
    let show = |bits: Option<f64>| bits.map_or("–".to_owned(), |bits| format!("{bits:.1}"));
    while len < keys {
        let capacity = filter.capacity() as u64;
        fill(&filter, len..capacity);
        len = capacity;
        let (slots, memory, full) = (filter.slots(), filter.memory_usage(), bits_a_key(&filter));
        let rate = found(&filter, absent) as f64 / absent.next_multiple_of(1024) as f64;
        let most = filter.max_false_positive_rate();
        let mut insert_while = |is: fn(&Growable) -> bool| {
            while is(&filter) {
                filter.insert(&key(len)).expect("it grows");
                len += 1;
            }
        };
        // Both tables are there at this moment, so their difference is the new one.
        let (mut amid, mut next_table) = (None, 0);
        if capacity < filter.max_capacity() as u64 {
            insert_while(|filter| filter.tables() == 1);
            next_table = filter.memory_usage() - memory;
            (amid, table) = (Some(bits_a_key(&filter)), next_table / 2);
            insert_while(|filter| filter.tables() == 2);
        }
        rows.push(vec![
            capacity.to_string(),
            format!("{:.1}", table as f64 / 1024.0),
            format!("{:.0}", slots as f64 * 8.0 / table as f64),
            show(just_doubled),
            show(Some(full)),
            show(amid),
            format!("{:.5}", rate * 100.0),
            format!("{:.5}", most * 100.0),
        ]);
        if next_table == 0 {
            break;
        }
        (just_doubled, table) = (Some(bits_a_key(&filter)), next_table);
    }
    rows
}

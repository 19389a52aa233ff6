//! Vector's enrichment table.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use concurrent_cuckoo_filter::ExpiringInsertError;
use replay::adopters::vector::table::{Config, MemoryTable};
use replay::adopters::vector::{Condition, Error, ObjectMap, Table, Value};

use crate::RATE;

const SECOND: Duration = Duration::from_secs(1);

fn config() -> Config {
    Config {
        ttl: 600 * SECOND,
        scan_interval: 30 * SECOND,
        ttl_field: "ttl".to_owned(),
        max_entries: 1000,
        false_positive_rate: RATE,
        hash_key: *b"sixteen secrets!",
    }
}

/// So many seconds after noon.
fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_699_963_200 + seconds)
}

fn table() -> MemoryTable {
    let table = MemoryTable::new(config()).unwrap();
    table.scan(at(0)).unwrap();
    table
}

fn object<const N: usize>(fields: [(&str, Value); N]) -> ObjectMap {
    fields.map(|(name, value)| (name.to_owned(), value)).into()
}

/// For how many seconds the table still has the key.
fn ttl(table: &MemoryTable, key: &str) -> Option<i64> {
    let row = table.find_table_rows(&[Condition::Equals(key)]).unwrap().pop()?;
    let Value::Integer(ttl) = row["ttl"] else { panic!("{row:?}") };
    assert_eq!(row, object([("key", key.into()), ("ttl", Value::Integer(ttl)), ("value", Value::Null)]));
    Some(ttl)
}

#[test]
fn finds_a_row_that_was_put_in_and_no_other() {
    let table = table();
    assert_eq!(table.handle_value(&object([("key", Value::Integer(5))])), []);
    assert!(ttl(&table, "key").is_some());
    assert_eq!(ttl(&table, "another key"), None);
}

#[test]
fn answers_one_condition_of_equality() {
    let table = table();
    assert_eq!(table.find_table_rows(&[]), Err(Error::MissingCondition));
    assert_eq!(table.find_table_rows(&[Condition::Other]), Err(Error::OnlyEqualityConditionAllowed));
    let two = [Condition::Equals("a"), Condition::Equals("b")];
    assert_eq!(table.find_table_rows(&two), Err(Error::OnlyOneConditionAllowed));
}

#[test]
fn a_key_lives_for_its_time_and_up_to_an_interval_more() {
    let table = table();
    let own_ttl = Value::Object(object([("ttl", Value::Integer(90))]));
    table.handle_value(&object([("usual", Value::Integer(5)), ("short", own_ttl)]));
    for (seconds, short, usual) in [(90, true, true), (120, false, true), (600, false, true), (630, false, false)] {
        table.scan(at(seconds)).unwrap();
        assert_eq!((ttl(&table, "short").is_some(), ttl(&table, "usual").is_some()), (short, usual), "{seconds}");
    }
}

#[test]
fn a_key_that_is_replaced_lives_anew() {
    let table = table();
    table.handle_value(&object([("key", Value::Integer(5))]));
    table.scan(at(300)).unwrap();
    assert_eq!(ttl(&table, "key"), Some(330));
    table.handle_value(&object([("key", Value::Integer(6))]));
    assert_eq!(ttl(&table, "key"), Some(630));
    assert_eq!(table.keys().len(), 1);
}

#[test]
fn null_removes_a_key() {
    let table = table();
    table.handle_value(&object([("a", Value::Integer(5)), ("b", Value::Integer(5))]));
    table.handle_value(&object([("a", Value::Null)]));
    assert!(ttl(&table, "a").is_none() && ttl(&table, "b").is_some());
}

#[test]
fn a_time_to_live_that_is_too_long_is_refused_by_name() {
    let table = table();
    let century = Value::Object(object([("ttl", Value::Integer(3_000_000_000))]));
    let refused = table.handle_value(&object([("key", century)]));
    assert!(
        matches!(&refused[..], [(key, ExpiringInsertError::LifetimeTooLong { .. })] if key == "key"),
        "{refused:?}"
    );
}

/// cuckoo-clock evicts keys at random: those that have just come, too.
#[test]
fn a_full_table_forgets_those_that_would_expire_first() {
    let table = table();
    let name = |number: u64| format!("key {number}");
    for second in 0..600 {
        if second % 30 == 0 {
            table.scan(at(second)).unwrap();
        }
        for number in 4 * second..4 * second + 4 {
            assert_eq!(table.handle_value(&object([(name(number).as_str(), Value::Integer(1))])), []);
        }
    }
    assert!((1600..2400).all(|number| ttl(&table, &name(number)).is_some()), "the last 800 of 2,400");
    assert!(table.keys().stats().expiry.unwrap().evicted_early_by > 0);
}

#[test]
fn a_table_is_exported_and_imported_with_its_times() {
    let file = std::env::temp_dir().join(format!("replay-table-{}", std::process::id()));
    let exported = table();
    exported.handle_value(&object([("key", Value::Integer(5))]));
    exported.export(&file).unwrap();
    let imported = MemoryTable::import(&file, config(), 1 << 20);
    std::fs::remove_file(&file).unwrap();
    let imported = imported.unwrap();
    imported.scan(at(300)).unwrap();
    assert_eq!((ttl(&imported, "key"), ttl(&imported, "another key")), (Some(330), None));
}

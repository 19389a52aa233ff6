//! Vector's transform `dedupe`. Each case is tried with the fields that are matched, and with those that are ignored.

use replay::adopters::vector::dedupe::{Dedupe, Fields};
use replay::adopters::vector::{ObjectMap, Transform, Value};

use crate::RATE;

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn event(fields: &[(&str, Value)]) -> ObjectMap {
    let message = ("message".to_owned(), "hello".into());
    std::iter::once(message).chain(fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone()))).collect()
}

/// Which of the events pass, by transforms that match fields and that ignore others.
fn pass(events: usize, matched: &[&str], ignored: &[&str], all: &[ObjectMap]) -> Vec<bool> {
    let ignored = [ignored, &["message"]].concat();
    let answers = [Fields::Match(names(matched)), Fields::Ignore(names(&ignored))].map(|fields| {
        let mut dedupe = Dedupe::last(events, fields, RATE).unwrap();
        all.iter().map(|event| dedupe.transform_one(event.clone()).is_some()).collect::<Vec<_>>()
    });
    assert_eq!(answers[0], answers[1]);
    answers[0].clone()
}

#[test]
fn only_matched_fields_count() {
    let events = [("a", "b"), ("a2", "b"), ("a", "b2")]
        .map(|(matched, other)| event(&[("matched", matched.into()), ("unmatched", other.into())]));
    assert_eq!(pass(5, &["matched"], &["unmatched"], &events), [true, true, false]);
}

#[test]
fn the_name_of_a_field_matters() {
    let events = ["matched1", "matched2"].map(|name| event(&[(name, "a".into())]));
    assert_eq!(pass(5, &["matched1", "matched2"], &[], &events), [true, true]);
}

#[test]
fn the_order_of_fields_does_not_matter() {
    let fields = [("matched1", "a".into()), ("matched2", "b".into())];
    let [first, second] = fields.clone();
    assert_eq!(
        pass(5, &["matched1", "matched2"], &["other"], &[event(&fields), event(&[second, first])]),
        [true, false]
    );
}

#[test]
fn the_oldest_event_leaves() {
    let [first, second] = ["a", "b"].map(|value| event(&[("matched", value.into())]));
    assert_eq!(pass(1, &["matched"], &[], &[first.clone(), second, first]), [true, true, true]);
}

#[test]
fn values_of_two_kinds_differ_even_within_a_field() {
    let kinds = [Value::from("123"), Value::Integer(123)];
    let within = kinds.clone().map(|value| Value::Object(ObjectMap::from([("key".to_owned(), value)])));
    for values in [kinds, within] {
        assert_eq!(pass(5, &["matched"], &[], &values.map(|value| event(&[("matched", value)]))), [true, true]);
    }
}

#[test]
fn null_is_not_a_missing_field() {
    assert_eq!(pass(5, &["matched"], &[], &[event(&[("matched", Value::Null)]), event(&[])]), [true, true]);
}

fn numbered(number: usize) -> ObjectMap {
    event(&[("matched", Value::Integer(number as i64))])
}

fn matched() -> Fields {
    Fields::Match(names(&["matched"]))
}

#[test]
fn an_event_that_comes_again_is_remembered_anew() {
    let dedupe = Dedupe::last(1000, matched(), RATE).unwrap();
    let mut new = 0;
    for number in 0..10_000 {
        new += usize::from(!dedupe.is_duplicate(&numbered(number)));
        assert!(number % 900 != 0 || number == 0 || dedupe.is_duplicate(&numbered(0)), "seen 900 events before");
    }
    assert!(new > 9990, "{new}");
    assert!((9000..10_000).all(|number| dedupe.is_duplicate(&numbered(number))));
}

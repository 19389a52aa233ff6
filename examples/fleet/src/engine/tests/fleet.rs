//! What nodes agree on, and digests.

use std::time::Duration;

use super::subject::*;
use crate::change::Agreement;
use crate::log::{EngineError, Log, Place};

#[test]
fn a_node_with_other_settings_is_told_both() {
    holds(|subject| {
        let head = agree(subject);
        assert_eq!(subject.client().log().agree(&agreement()).unwrap(), head);
        let other = Agreement { capacity: CAPACITY + 1, ..agreement() };
        let Err(EngineError::Disagreement { ours, theirs }) = subject.log().agree(&other) else {
            panic!("agreed");
        };
        assert_eq!((ours, theirs), (other.to_string(), agreement().to_string()));
    });
}

#[test]
fn every_setting_is_agreed_on() {
    let others = [
        Agreement { schema: "others".into(), ..agreement() },
        Agreement { probe: 2, ..agreement() },
        Agreement { capacity: 1, ..agreement() },
        Agreement { rate: 1, ..agreement() },
        Agreement { resolution: Duration::from_secs(1), ..agreement() },
        Agreement { longest: 1, ..agreement() },
    ];
    for other in others {
        assert_ne!(other.to_string(), agreement().to_string());
    }
}

#[test]
fn digests_of_a_place_are_told_to_all() {
    holds(|subject| {
        let head = agree(subject);
        append(subject, head, &[revoke(1, tick() + 5)]);
        let later = subject.log().head(head.epoch).unwrap().place();
        let said = subject.log().compare(head.place(), "a", u64::MAX).unwrap();
        assert_eq!(said, [("a".into(), u64::MAX)]);
        let said = subject.client().log().compare(head.place(), "b", 2).unwrap();
        assert_eq!(said, [("a".into(), u64::MAX), ("b".into(), 2)]);
        assert_eq!(subject.log().compare(later, "b", 3).unwrap(), [("b".into(), 3)]);
        let unknown = Place { position: later.position + 1, ..later };
        assert_another(subject.log().compare(unknown, "b", 3));
    });
}

#[test]
fn settings_that_can_lose_something_are_told() {
    let concerns = |options: &[&str]| Engine::start_with(options).map(|engine| engine.client().concerns().unwrap());
    let Some(none) = concerns(&[]) else { return };
    assert_eq!(none, Vec::<String>::new());
    let told = |options: &[&str], words: &str| {
        let concerns = concerns(options).unwrap_or_default();
        assert!(concerns.len() == 1 && concerns[0].starts_with(words), "{concerns:?}");
    };
    told(&["--appendonly", "no"], "appendonly is not yes");
    told(&["--appendfsync", "everysec"], "appendfsync is not always");
    told(&["--no-appendfsync-on-rewrite", "yes"], "no-appendfsync-on-rewrite is not no");
    told(&["--maxmemory", "1gb", "--maxmemory-policy", "allkeys-lru"], "maxmemory-policy is not noeviction");
    // If an engine does not allow the question, that is not the node's concern.
    assert_eq!(concerns(&["--rename-command", "CONFIG", "", "--appendonly", "no"]), Some(Vec::new()));
}

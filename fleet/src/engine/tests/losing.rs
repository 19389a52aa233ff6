//! An engine that has lost something, and the operator who accepts it. And a replica.

use super::*;

/// A node comes back to an engine that does not have what it knew.
fn returns(subject: &Subject, known: Place, at: u64, accepts_loss: bool) -> Result<Head, EngineError> {
    subject.agree_with(&agreement(), Some(Memory { place: known, at }), accepts_loss)
}

fn a_loss_waits(subject: &Subject) {
    let head = subject.agree();
    let known = subject.send(head.place, &[revoke(1, tick() + 50)]).place;
    assert_eq!(returns(subject, known, start(), false).unwrap().place, known, "nothing is lost");
    for is_empty in [false, true] {
        if is_empty {
            subject.engine.flush();
        } else {
            subject.lose_end(1);
        }
        let told = returns(subject, known, start() + 1, false);
        let Err(EngineError::Waits(why)) = told else { panic!("it does not wait: {told:?}") };
        assert!(why.contains("node a knew position 2") && why.contains("ends at position"), "{why}");
        // Nobody goes on, whether it knew something or not.
        for memory in [None, Some(Memory { place: known, at: start() })] {
            assert!(matches!(subject.agree_with(&agreement(), memory, false), Err(EngineError::Waits(_))));
        }
        assert!(matches!(subject.word(known), Err(EngineError::Waits(_))));
        assert!(matches!(subject.append(known, fresh(), &[]), Err(EngineError::Waits(_))));
        assert!(matches!(subject.revoked_until(known, 1), Err(EngineError::Waits(_))));
        assert_eq!(done(subject.client.accept()), Ok(Some(why)));
        assert_eq!(done(subject.client.accept()), Ok(None));
        // It was accepted for all that knew it by then.
        let head = returns(subject, known, start() + 1, false).unwrap();
        assert_eq!(subject.word(head.place).unwrap().place, head.place);
        // One that knew something later has lost something else.
        assert!(matches!(returns(subject, known, start() + 2, false), Err(EngineError::Waits(_))));
        // A node may be told to accept every loss.
        returns(subject, known, start() + 2, true).unwrap();
        subject.agree();
        subject.send(head.place, &[revoke(1, tick() + 50)]);
    }
}

#[test]
fn after_a_loss_the_fleet_waits_for_an_operator() {
    holds(a_loss_waits);
    fails_without(Step::Waits, "it does not wait", a_loss_waits);
}

/// A replica that is behind: it has the log up to some place, and would have nothing against it.
fn a_replica_says_nothing(subject: &Subject) {
    let head = subject.agree();
    subject.engine.say::<()>("REPLICAOF 127.0.0.1 1");
    let (client, known) = (&subject.client, head.place);
    let calls = [
        subject.word(known).map(drop),
        subject.agree_with(&agreement(), None, false).map(drop),
        subject.append(known, fresh(), &[revoke(1, tick() + 5)]).map(drop),
        subject.revoked_until(known, 1).map(drop),
        done(client.records(known, 0)).map(drop),
        done(client.compare(known, "a", 1)).map(drop),
        done(client.put(known, "key", 0, vec![1])),
        subject.trim(known),
        done(client.lease("a", LONG)).map(drop),
        done(client.accept()).map(drop),
    ];
    for (call, answer) in calls.into_iter().enumerate() {
        let is_told = matches!(&answer, Err(EngineError::Unreachable(why)) if why.contains("it is a replica"));
        assert!(is_told, "a replica is believed, call {call}: {answer:?}");
    }
    subject.engine.say::<()>("REPLICAOF NO ONE");
    assert_eq!(subject.word(known).unwrap().place, known);
}

#[test]
fn a_replica_gives_no_word() {
    holds(a_replica_says_nothing);
    fails_without(Step::Master, "a replica is believed", a_replica_says_nothing);
}

#[test]
fn what_is_left_of_a_former_log_counts_for_nothing() {
    holds(|subject| {
        let (head, id, proposals) = (subject.agree(), fresh(), [revoke(1, tick() + 50)]);
        let first = subject.append(head.place, id, &proposals).unwrap();
        // Somebody deletes what the fleet has agreed on, and nothing else.
        subject.engine.say::<()>("DEL {test}:fleet");
        let new = subject.agree();
        assert_eq!((new.place.position, new.first), (1, 1));
        assert_eq!(subject.revoked_until(new.place, 1).unwrap(), None);
        assert_eq!(done(subject.client.records(new.place, 0)), Ok((0, vec![])));
        assert_eq!(subject.append(new.place, id, &proposals).unwrap().outcomes, first.outcomes);
        assert_eq!(changes(&subject.all(new.place.epoch)), [insert(1, tick() + 50)]);
    });
}

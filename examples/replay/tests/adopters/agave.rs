//! agave's deduper.

use std::time::Duration;

use rand::Rng;
use replay::adopters::agave::{Deduper, Packet};

use crate::{RATE, keys, random};

const CYCLE: Duration = Duration::from_secs(300);

struct Transaction(Option<Vec<u8>>);

impl Packet for Transaction {
    fn data(&self) -> Option<&[u8]> {
        self.0.as_deref()
    }
    fn discard(&mut self) {
        self.0 = None;
    }
}

fn deduper(packets: usize) -> Deduper {
    Deduper::new(packets, RATE, CYCLE).unwrap()
}

/// Batches of 128 packets.
fn batches(packets: impl IntoIterator<Item = Vec<u8>>) -> Vec<Vec<Transaction>> {
    let mut batches = vec![Vec::new()];
    for packet in packets {
        if batches.last().unwrap().len() == 128 {
            batches.push(Vec::new());
        }
        batches.last_mut().unwrap().push(Transaction(Some(packet)));
    }
    batches
}

fn different(number: usize, seed: u64) -> Vec<Vec<u8>> {
    keys(number, seed).into_iter().map(|key| key.repeat(13)).collect()
}

#[test]
fn of_equal_packets_one_stays() {
    let mut batches = batches(vec![vec![7; 215]; 1024]);
    assert_eq!(deduper(10_000).dedup_packets_and_count_discards(&mut batches), 1023);
    assert!(batches[0][0].data().is_some() && batches[0][1].data().is_none() && batches[7][0].data().is_none());
}

#[test]
fn different_packets_stay_and_are_forgotten_after_the_cycle() {
    let deduper = deduper(10_000);
    let packets = different(1024, 1);
    assert!(deduper.dedup_packets_and_count_discards(&mut batches(packets.clone())) < 2);
    assert!(!deduper.reset_at(CYCLE.as_secs()), "none had to go before its time");
    assert!(packets.iter().all(|packet| deduper.dedup(packet)), "the cycle is just over");
    deduper.reset_at(CYCLE.as_secs() + 30);
    assert_eq!(deduper.seen().filter().live_len(), 0);
}

#[test]
fn a_packet_that_was_discarded_before_counts_and_is_not_remembered() {
    let deduper = deduper(1000);
    let mut batches = vec![vec![Transaction(None), Transaction(Some(vec![1])), Transaction(Some(vec![1]))]];
    assert_eq!(deduper.dedup_packets_and_count_discards(&mut batches), 2);
    assert_eq!(deduper.seen().filter().len(), 1);
}

/// agave's own, when it is saturated, forgets all of them.
#[test]
fn a_saturated_deduper_says_so_and_forgets_the_oldest_only() {
    const ROOM: usize = 14_000;
    let deduper = deduper(ROOM);
    let mut second = 0;
    let packets = different(3 * ROOM, 2);
    let mut saturated = false;
    for packets in packets.chunks(ROOM / 14) {
        assert!(deduper.dedup_packets_and_count_discards(&mut batches(packets.to_vec())) < 2, "second {second}");
        second += 7; // three times as many packets as there is room for, so that none would expire
        saturated |= deduper.reset_at(second);
    }
    assert!(saturated);
    assert!(
        packets[3 * ROOM - ROOM * 3 / 4..].iter().all(|packet| deduper.dedup(packet)),
        "three quarters of the room"
    );
}

#[test]
fn packets_of_any_length_are_known_at_once() {
    let (deduper, mut random) = (deduper(51_414), random(3));
    let mut buffer = [0; 1232];
    let mut seen = 0;
    for _ in 0..51_414 {
        let length = random.random_range(16..buffer.len());
        random.fill(&mut buffer[..length]);
        seen += usize::from(deduper.dedup(&buffer[..length]));
        assert!(deduper.dedup(&buffer[..length]));
    }
    assert!(seen < 3, "{seen} new packets were taken for old ones");
}

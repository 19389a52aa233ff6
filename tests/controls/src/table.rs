//! The controls, and what else is different in a model. A file's edits are made in the order in which they stand here.

use crate::{Control, Edit};

const fn control(name: &'static str, leaves_out: &'static str, edits: &'static [Edit]) -> Control {
    Control { name, leaves_out, edits }
}

/// An edit of code that occurs once.
const fn edit(file: &'static str, code: &'static str, instead: &'static str) -> Edit {
    Edit { file, times: 1, code, instead }
}

/// An edit of code that occurs twice.
const fn edit_both(file: &'static str, code: &'static str, instead: &'static str) -> Edit {
    Edit { file, times: 2, code, instead }
}

/// What a control does to a step that is a statement.
const UNLESS_LEFT_OUT: &str = "if !LEFT_OUT { CODE }";

/// What is different in every model, whether or not a step is left out.
pub const ADDITIONS: &[Edit] = &[
    // The models' entry points.
    edit("lib.rs", "mod machine;", "CODE pub mod model;"),
    edit(
        "table/image/copy_on_write.rs",
        "pub(crate) struct SaveNumber(u64);",
        "CODE impl SaveNumber { pub(crate) const ONLY: Self = Self(0); }",
    ),
    edit(
        "table/image/read.rs",
        "impl<'a> TableImage<'a> {",
        "CODE pub(crate) fn forgotten(table: &'a dyn ImageSource) -> Self { \
         Self { save: SaveNumber::ONLY, held: Held::Borrowed(table) } }",
    ),
    // The current tick, without any ordering.
    edit(
        "table/expiring/clock.rs",
        "impl Clock {",
        "CODE pub(crate) fn peek(&self) -> u64 { \
         let own = Reading(self.reading.load(Ordering::Relaxed)).now(); \
         own.wrapping_add(self.offset.load(Ordering::Relaxed)).wrapping_sub(self.ahead.load(Ordering::Relaxed)) }",
    ),
    // The capacity of a model's table is far below what it holds, since it is so small. It takes whatever finds room, unless the
    // model sets a limit.
    edit("growth/growing_table.rs", "most: Tally::new(plan.max_capacity() as u64),", "most: Tally::new(1000),"),
    // A model names the class that it means.
    edit("word/geometry.rs", "fn mix(hash: u64) -> u64 {", "CODE if true { return hash; }"),
    // Memory is not that of the system: its words are a model's atomics.
    edit("machine/memory.rs", "use crate::machine::system::zeroed;", "use crate::sync::memory::zeroed;"),
    edit("machine/memory.rs", "use crate::machine::system::release;", "use crate::sync::memory::release;"),
    edit("machine/range.rs", "use reserved::Reserved;", "use crate::sync::memory::Reserved;"),
    // loom assumes that a `SeqCst` load may always read the initial value of an atomic. It treats the value of a `SeqCst`
    // exchange correctly.
    edit(
        "growth/growing_table.rs",
        "Some(table)",
        "if cfg!(ccf_model = \"loom\") { \
         (0..buckets).for_each(|number| _ = table.store(number, Bucket::default())); table.change_state(state); } CODE",
    ),
    // Locks and steps that controls leave out.
    edit(
        "table/stripe.rs",
        "impl Stripe {",
        "CODE pub(crate) fn lock_if(&self, wanted: bool, counters: &Counters) -> Guard<'_> { \
         if wanted { self.lock(counters) } else { Guard { version: &self.version, _lock: None } } } \
         pub(crate) fn try_lock_if(&self, wanted: bool) -> Option<Guard<'_>> { \
         if wanted { self.try_lock() } else { Some(Guard { version: &self.version, _lock: None }) } }",
    ),
    edit(
        "table/stripe.rs",
        "pub(crate) fn under_all_locks<R>(",
        "pub(crate) fn under_all_locks_if<R>(wanted: bool, stripes: &[Stripe], counters: &Counters, \
         spare: Option<&Spare>, work: impl FnOnce(&AllLocked<'_>) -> R) -> R { \
         if wanted { under_all_locks(stripes, counters, spare, work) } else { work(&AllLocked { stripes, spare }) } } CODE",
    ),
    edit(
        "table/table.rs",
        "pub(crate) fn under_all_locks<R>(",
        "pub(crate) fn under_all_locks_if<R>(&self, wanted: bool, work: impl FnOnce(&AllLocked<'_>) -> R) -> R { \
         stripe::under_all_locks_if(wanted, &self.stripes, &self.counters, None, work) } \
         pub(super) fn under_all_locks_with_if<R>(&self, wanted: bool, spare: &Spare, words: u64, \
         work: impl FnOnce(&AllLocked<'_>) -> R) -> Option<R> { if wanted { self.under_all_locks_with(spare, words, work) } \
         else { Some(stripe::under_all_locks_if(false, &self.stripes, &self.counters, Some(spare), work)) } } \
         pub(super) fn lock_to_change_if<'a>(&'a self, wanted: bool, bucket_sum: usize, words: u64, \
         all: Option<&'a AllLocked<'_>>) -> Changing<'a> { if all.is_some() { return self.lock_to_change(bucket_sum, words, all); } \
         self.running_saves().lock_to_change(words, || self.stripe(bucket_sum).lock_if(wanted, &self.counters)) } CODE",
    ),
    edit(
        "growth/growing_table.rs",
        "pub(super) fn under_all_locks<R>(",
        "pub(super) fn under_all_locks_if<R>(&self, wanted: bool, work: impl FnOnce(&AllLocked<'_>) -> R) -> R { \
         stripe::under_all_locks_if(wanted, &self.stripes, self.counters(), None, work) } \
         pub(super) fn under_all_locks_with_if<R>(&self, wanted: bool, spare: &Spare, \
         work: impl FnOnce(&AllLocked<'_>) -> R) -> R { \
         stripe::under_all_locks_if(wanted, &self.stripes, self.counters(), Some(spare), work) } \
         pub(super) fn lock_to_change_if<'a>(&'a self, wanted: bool, base: u32, words: u64, \
         all: Option<&'a AllLocked<'_>>) -> Changing<'a> { if all.is_some() { return self.lock_to_change(base, words, all); } \
         self.running_saves().lock_to_change(words, || self.stripe(base).lock_if(wanted, self.counters())) } CODE",
    ),
    edit(
        "growth/growing_table.rs",
        "pub(super) fn enter(",
        "pub(super) fn enter_if(&self, wanted: bool, side: u32) -> (Option<MutexGuard<'_, ()>>, Place) { \
         if wanted { let (gate, place) = self.enter(side); (Some(gate), place) } \
         else { (None, self.state().place(side)) } } \
         pub(super) fn enter_both_if(&self, wanted: bool, placed: Placed) \
         -> (Option<[MutexGuard<'_, ()>; 2]>, Placed) { \
         if wanted { let (gates, placed) = self.enter_both(placed); (Some(gates), placed) } \
         else { (None, placed) } } CODE",
    ),
    edit(
        "growth/slots.rs",
        "pub(super) fn remove_from_side(&self, guard: &Guard<'_>, spare: Option<&Spare>, class: Class, side: usize) -> bool {",
        "CODE self.remove_from_side_if(true, true, guard, spare, class, side) } pub(super) fn remove_from_side_if(\
         &self, bumps: bool, copies_for_saves: bool, guard: &Guard<'_>, spare: Option<&Spare>, class: Class, side: usize) -> bool {",
    ),
    edit(
        "growth/slots.rs",
        "self.copy_for_saves(number, spare);\n        guard.bump();",
        "if copies_for_saves { self.copy_for_saves(number, spare); }\n        if bumps { guard.bump(); }",
    ),
];

/// The steps that the models can leave out.
pub const CONTROLS: &[Control] = &[
    // Relocations.
    control(
        "RelocateWithoutBump",
        "A relocation does not bump the version.",
        &[
            edit("table/relocate.rs", "guard.bump();", UNLESS_LEFT_OUT),
            edit("growth/room.rs", "guard.bump();", UNLESS_LEFT_OUT),
        ],
    ),
    control(
        "RelocateBumpsLate",
        "A relocation bumps the version after it has cleared the old slot.",
        &[
            edit("table/relocate.rs", "guard.bump();", UNLESS_LEFT_OUT),
            edit(
                "table/relocate.rs",
                "self.change(from, seen, |seen| seen.remove(layout, entry));",
                "if self.change(from, seen, |seen| seen.remove(layout, entry)) && LEFT_OUT { guard.bump() }",
            ),
        ],
    ),
    control(
        "RelocateAddsWithoutBump",
        "A relocation of a value does not bump the version before it fills the new slot.",
        &[edit("table/relocate.rs", "self.bump_to_add(guard);", UNLESS_LEFT_OUT)],
    ),
    control(
        "RelocateWithoutRecheck",
        "A relocation trusts its plan: it does not check again that the fingerprint is still in the old bucket.",
        &[
            edit(
                "table/relocate.rs",
                "if !self.load(from).holds_entry(layout, entry) {",
                "if !LEFT_OUT && !self.load(from).holds_entry(layout, entry) {",
            ),
            edit(
                "growth/room.rs",
                "let Some(left) = layouts[from].remove(seen, stored[from]) else { return Relocation::Nothing };",
                "let left = match layouts[from].remove(seen, stored[from]) { \
                 Some(left) => left, None if LEFT_OUT => seen, None => return Relocation::Nothing };",
            ),
        ],
    ),
    control(
        "RelocateWithoutLock",
        "A relocation does not lock its stripe.",
        &[
            edit("table/relocate.rs", "self.lock_to_change(", "self.lock_to_change_if(!LEFT_OUT, "),
            edit("growth/room.rs", "self.lock_to_change(", "self.lock_to_change_if(!LEFT_OUT, "),
        ],
    ),
    control(
        "RelocateCopiesNoSource",
        "A relocation does not copy, for a save, the word that it removes its copy from.",
        &[
            edit("table/relocate.rs", "self.copy_for_saves(from, spare);", UNLESS_LEFT_OUT),
            edit("growth/room.rs", "self.copy_for_saves(numbers[from], spare);", UNLESS_LEFT_OUT),
        ],
    ),
    control(
        "RelocateCopiesNoTarget",
        "A relocation does not copy, for a save, the word that it puts its copy into.",
        &[
            edit("table/relocate.rs", "self.copy_for_saves(to, spare);", UNLESS_LEFT_OUT),
            edit("growth/room.rs", "self.copy_for_saves(numbers[to], spare);", UNLESS_LEFT_OUT),
        ],
    ),
    control(
        "RelocateCopiesTargetLate",
        "A relocation copies, for a save, the word that it puts its copy into only after it has put the copy there.",
        &[
            edit("table/relocate.rs", "self.copy_for_saves(to, spare);", UNLESS_LEFT_OUT),
            edit(
                "table/relocate.rs",
                "if !self.put(layout, to, entry) {",
                "let filled = self.put(layout, to, entry); if LEFT_OUT { self.copy_for_saves(to, spare) }; if !filled {",
            ),
        ],
    ),
    control(
        "RelocateClearsFirst",
        "A relocation clears the old slot before it fills the new one.",
        &[
            edit(
                "table/relocate.rs",
                "let filled = self.put(layout, to, entry);",
                "if LEFT_OUT { let seen = self.load(from); guard.bump(); \
             return self.change(from, seen, |seen| seen.remove(layout, entry)) && self.put(layout, to, entry); }; CODE",
            ),
            edit(
                "growth/room.rs",
                "store(words[to], added);",
                "if LEFT_OUT { guard.bump(); store(words[from], left); store(words[to], added); return Relocation::Moved; }; CODE",
            ),
        ],
    ),
    control(
        "RelocateExpired",
        "A relocation moves an entry that has expired, instead of removing it.",
        &[edit("table/relocate.rs", "if !self.entries.is_live(", "if !LEFT_OUT && !self.entries.is_live(")],
    ),
    // Removals, and `clear`.
    control(
        "RemoveWithoutBump",
        "A removal does not bump the version.",
        &[
            edit_both("table/change.rs", "guard.bump();", UNLESS_LEFT_OUT),
            edit("growth/change.rs", "self.remove_from_side(", "self.remove_from_side_if(!LEFT_OUT, true, "),
        ],
    ),
    control(
        "RemoveBumpsLate",
        "A removal bumps the version after it has cleared the slot.",
        &[
            edit_both("table/change.rs", "guard.bump();", UNLESS_LEFT_OUT),
            edit(
                "table/change.rs",
                "if self.exchange(bucket, copy.bucket, copy.emptied(layout)).is_ok() {",
                "CODE if LEFT_OUT { guard.bump() }",
            ),
            edit(
                "table/change.rs",
                "self.change(bucket, seen, |seen| seen.remove(self.layout, entry))",
                "CODE && { if LEFT_OUT { guard.bump() } true }",
            ),
        ],
    ),
    control(
        "RemoveWithoutLock",
        "A removal does not lock its stripe.",
        &[
            edit("table/change.rs", ".try_lock()", ".try_lock_if(!LEFT_OUT)"),
            edit(
                "table/expiring/mod.rs",
                ".lock(&self.counters);\n        // An expiry that is not admitted",
                ".lock_if(!LEFT_OUT, &self.counters);\n        // An expiry that is not admitted",
            ),
            edit(
                "table/expiring/mod.rs",
                "self.lock_to_change(class.bucket_sum, 1, None);\n        let first = self.live_entry(",
                "self.lock_to_change_if(!LEFT_OUT, class.bucket_sum, 1, None);\n        let first = self.live_entry(",
            ),
            edit(
                "growth/change.rs",
                "self.lock_to_change(class.base, 1, None);\n        let copies = self.copies(class);",
                "self.lock_to_change_if(!LEFT_OUT, class.base, 1, None);\n        let copies = self.copies(class);",
            ),
        ],
    ),
    control(
        "RemoveCopiesNothing",
        "A removal does not copy, for a save, the word that it removes its copy from.",
        &[
            edit("table/change.rs", "self.copy_for_saves(bucket, spare);", UNLESS_LEFT_OUT),
            edit(
                "growth/change.rs",
                ", true, &changing.guard, changing.spare(), class, side)",
                ", !LEFT_OUT, &changing.guard, changing.spare(), class, side)",
            ),
        ],
    ),
    control(
        "ClearWithoutLocks",
        "`clear` does not hold the stripes' locks.",
        &[
            edit("table/change.rs", "self.under_all_locks(", "self.under_all_locks_if(!LEFT_OUT, "),
            edit(
                "growth/change.rs",
                "self.under_all_locks(|all| {\n            self.stripes",
                "self.under_all_locks_if(!LEFT_OUT, |all| {\n            self.stripes",
            ),
        ],
    ),
    control(
        "ClearWithoutBump",
        "`clear` does not bump the versions.",
        &[
            edit(
                "table/change.rs",
                "self.stripes.iter().for_each(|stripe| stripe.locked_with_all(all).bump());",
                UNLESS_LEFT_OUT,
            ),
            edit(
                "growth/change.rs",
                "self.stripes.iter().for_each(|stripe| stripe.locked_with_all(all).bump());",
                UNLESS_LEFT_OUT,
            ),
        ],
    ),
    control(
        "ClearWithoutGates",
        "`clear` of a growing table does not hold the gates.",
        &[edit(
            "growth/change.rs",
            "let _gates = self.all_gates();",
            "let _gates = (!LEFT_OUT).then(|| self.all_gates());",
        )],
    ),
    // Lookups.
    control(
        "LookupWithoutVersion",
        "A lookup that found nothing does not read the version again.",
        &[
            edit(
                "lookup/fixed.rs",
                "if self.source.changes_since(version) == 0 {",
                "if LEFT_OUT || self.source.changes_since(version) == 0 {",
            ),
            edit("lookup/fixed.rs", "if changes != 0 ||", "if changes != 0 && !LEFT_OUT ||"),
            edit(
                "lookup/growing.rs",
                "(self.0.changes_since(version) == 0 && self.0.is_still(epoch)).then_some(pair)",
                "((LEFT_OUT || self.0.changes_since(version) == 0) && self.0.is_still(epoch)).then_some(pair)",
            ),
            edit(
                "growth/lookup.rs",
                "(found || stripe.is_still(version)) {",
                "(LEFT_OUT || found || stripe.is_still(version)) {",
            ),
            edit("lookup/growing.rs", "changes |= source.changes_since(version);", UNLESS_LEFT_OUT),
        ],
    ),
    control(
        "CountWithoutLock",
        "`count` does not lock its stripe.",
        &[
            edit("table/lookup.rs", ".lock(&self.counters)", ".lock_if(!LEFT_OUT, &self.counters)"),
            edit("table/copy_count.rs", ".lock(&self.counters)", ".lock_if(!LEFT_OUT, &self.counters)"),
            edit(
                "table/expiring/mod.rs",
                "let _guard = self.stripe(class.bucket_sum).lock(&self.counters);",
                "let _guard = self.stripe(class.bucket_sum).lock_if(!LEFT_OUT, &self.counters);",
            ),
            edit("growth/lookup.rs", ".lock(self.counters())", ".lock_if(!LEFT_OUT, self.counters())"),
        ],
    ),
    // Inserts.
    control(
        "AddOverwrites",
        "An addition stores its word even if the bucket has changed since it was read.",
        &[edit(
            "table/table.rs",
            "let word = at(&self.words, bucket);",
            "CODE if LEFT_OUT && changed.occupied(self.layout) > seen.occupied(self.layout) { \
             word.store(changed.0, Ordering::SeqCst); return Ok(()); };",
        )],
    ),
    control(
        "TakeOverwrites",
        "A removal or relocation stores its word even if the bucket has changed since it was read.",
        &[edit(
            "table/table.rs",
            "let word = at(&self.words, bucket);",
            "CODE if LEFT_OUT && changed.occupied(self.layout) <= seen.occupied(self.layout) { \
             word.store(changed.0, Ordering::SeqCst); return Ok(()); };",
        )],
    ),
    control(
        "CountDropsUpdates",
        "The length is changed by a load and a store.",
        &[
            edit(
                "table/counters.rs",
                "self.shard().word.fetch_add(change * ShardWord::ITEM, Ordering::Relaxed);",
                "if LEFT_OUT { let word = &self.shard().word; \
                 let sum = word.load(Ordering::Relaxed) + change * ShardWord::ITEM; word.store(sum, Ordering::Relaxed); } \
                 else { CODE }",
            ),
            edit(
                "table/counters.rs",
                "while now.permits_insert() {",
                "CODE if LEFT_OUT { word.store(now.0 + ShardWord::INSERT, Ordering::Relaxed); return true; }",
            ),
        ],
    ),
    control(
        "InsertIfAbsentWithoutLock",
        "`insert_if_absent` does not lock its stripe. (Nor does it look first, which would hide that.)",
        &[
            edit(
                "table/change.rs",
                "if self.contains(layout, hash) {",
                "if !LEFT_OUT && self.contains(layout, hash) {",
            ),
            edit(
                "table/change.rs",
                "// Avoids the lock if a copy is found.\n        if ",
                "// Avoids the lock if a copy is found.\n        if !LEFT_OUT && ",
            ),
            edit("table/change.rs", ".lock(&self.counters)", ".lock_if(!LEFT_OUT, &self.counters)"),
            edit(
                "table/change.rs",
                "self.lock_to_change(item.bucket_sum, 2, all)",
                "self.lock_to_change_if(!LEFT_OUT, item.bucket_sum, 2, all)",
            ),
            edit(
                "table/maplet.rs",
                "let found = self.values(self.layout(), hash);",
                "let found = if LEFT_OUT { Values::EMPTY } else { self.values(self.layout(), hash) };",
            ),
            edit(
                "table/maplet.rs",
                "self.lock_to_change(item.bucket_sum, 2, all);\n            let pair = ",
                "self.lock_to_change_if(!LEFT_OUT, item.bucket_sum, 2, all);\n            let pair = ",
            ),
            edit("growth/change.rs", "if self.contains(hash) {", "if !LEFT_OUT && self.contains(hash) {"),
            edit(
                "growth/change.rs",
                "self.lock_to_change(class.base, 1, None);\n        self.add_counted(",
                "self.lock_to_change_if(!LEFT_OUT, class.base, 1, None);\n        self.add_counted(",
            ),
        ],
    ),
    control(
        "FullThoughPresent",
        "`insert_if_absent` fails without checking whether the key was inserted meanwhile.",
        &[
            edit(
                "table/copy_count.rs",
                "let needs_no_room = copies > 0",
                "let needs_no_room = !LEFT_OUT && copies > 0",
            ),
            edit(
                "growth/change.rs",
                "match self.add_counted(class, if_present, self.running_saves().spare_if_running(Some(spare))) {",
                "match if searched.room == Room::None && LEFT_OUT { Ok(Attempt::NoRoom) } else { \
                 self.add_counted(class, if_present, self.running_saves().spare_if_running(Some(spare))) } {",
            ),
        ],
    ),
    control(
        "FullWithoutConfirmation",
        "An insert fails after the first search that finds no path.",
        &[edit("table/relocate.rs", "if is_certain {", "if is_certain || LEFT_OUT {")],
    ),
    control(
        "FullIgnoresVersions",
        "An insert fails after the second search that finds no path, even if something has moved meanwhile.",
        &[edit("table/relocate.rs", "last.bumps == failed.bumps && is_one_reading", "LEFT_OUT || CODE")],
    ),
    control(
        "FullPassesOwnStripe",
        "Where few buckets can be reached, an insert passes only through the lock of its own item's stripe.",
        &[edit(
            "table/dead_end.rs",
            "stripes.add(self.stripes().number(bucket_sum));",
            "stripes.add(self.stripes().number(if LEFT_OUT { item.bucket_sum } else { bucket_sum }));",
        )],
    ),
    control(
        "FullWithoutLocks",
        "An insert whose searches were invalidated makes its last search without the stripes' locks.",
        &[
            edit("table/relocate.rs", "self.under_all_locks_with(", "self.under_all_locks_with_if(!LEFT_OUT, "),
            edit("growth/change.rs", "self.under_all_locks_with(", "self.under_all_locks_with_if(!LEFT_OUT, "),
        ],
    ),
    control(
        "AdmitsWithoutLock",
        "Near the limit of a growing table, an insert adds up the items without the lock.",
        &[edit(
            "growth/limit.rs",
            "let _resizing = self.resizing().lock.lock();",
            "let _resizing = (!LEFT_OUT).then(|| self.resizing().lock.lock());",
        )],
    ),
    control(
        "CountsBeforeItChecks",
        "Near the limit of a growing table, an insert counts its item before it checks, and takes that back if it fails.",
        &[
            edit("growth/limit.rs", "counters.add_len(1);", UNLESS_LEFT_OUT),
            edit(
                "growth/limit.rs",
                "let (counters, most) = (self.counters(), self.most());",
                "CODE if LEFT_OUT { counters.add_len(1); }",
            ),
            edit(
                "growth/limit.rs",
                "return Err(self.limit_reached(len));",
                "if LEFT_OUT { counters.add_len(-1); } CODE",
            ),
        ],
    ),
    control(
        "InsertCopiesNothing",
        "An insert does not copy, for a save, the word that it puts its copy into.",
        &[
            edit("table/table.rs", "if !self.try_copy_for_saves(", "if !LEFT_OUT && !self.try_copy_for_saves("),
            edit(
                "table/image/absorb.rs",
                "while !self.try_copy_for_saves(",
                "while !LEFT_OUT && !self.try_copy_for_saves(",
            ),
            edit("growth/slots.rs", "if self.running_saves().any() {", "if !LEFT_OUT && self.running_saves().any() {"),
            edit(
                "growth/slots.rs",
                "self.copy_for_saves(number, spare);\n        self.store(",
                "if !LEFT_OUT { self.copy_for_saves(number, spare); }\n        self.store(",
            ),
        ],
    ),
    // Values.
    control(
        "AddValueWithoutLock",
        "An insert of a value, or of an entry with an expiry, does not lock its stripe.",
        &[
            edit(
                "table/maplet.rs",
                "self.stripe(item.bucket_sum).try_lock()",
                "self.stripe(item.bucket_sum).try_lock_if(!LEFT_OUT)",
            ),
            edit(
                "table/maplet.rs",
                "self.lock_to_change(item.bucket_sum, 2, all);\n            Ok(Attempt::of(self.add_value_locked(",
                "self.lock_to_change_if(!LEFT_OUT, item.bucket_sum, 2, all);\n            Ok(Attempt::of(self.add_value_locked(",
            ),
            edit(
                "table/expiring/mod.rs",
                ".lock(&self.counters);\n        let (clock, mut is_full) =",
                ".lock_if(!LEFT_OUT, &self.counters);\n        let (clock, mut is_full) =",
            ),
            edit(
                "table/expiring/mod.rs",
                "self.lock_to_change(class.bucket_sum, 2, all)",
                "self.lock_to_change_if(!LEFT_OUT, class.bucket_sum, 2, all)",
            ),
        ],
    ),
    control(
        "AddValueWithoutBump",
        "An insert of a value does not bump the version.",
        &[
            edit("table/maplet.rs", "self.bump_to_add(&guard);", UNLESS_LEFT_OUT),
            edit("table/maplet.rs", "self.bump_to_add(&changing.guard);", UNLESS_LEFT_OUT),
            edit("table/change.rs", "self.bump_to_add(&changing.guard);", UNLESS_LEFT_OUT),
            edit("table/expiring/mod.rs", "self.bump_to_add(guard);", UNLESS_LEFT_OUT),
        ],
    ),
    control(
        "ReplaceWithoutLock",
        "A replacement of a value does not lock its stripe.",
        &[edit(
            "table/maplet.rs",
            "self.stripe(old.bucket_sum).try_lock()",
            "self.stripe(old.bucket_sum).try_lock_if(!LEFT_OUT)",
        )],
    ),
    control(
        "ReplaceWithoutBump",
        "A replacement of a value does not bump the version.",
        &[
            edit("table/maplet.rs", "guard.bump();", UNLESS_LEFT_OUT),
            edit(
                "table/table.rs",
                "guard.bump();\n        self.change(bucket, seen,",
                "if !LEFT_OUT { guard.bump(); }\n        self.change(bucket, seen,",
            ),
        ],
    ),
    control(
        "ReplaceTakesFirst",
        "A replacement removes the old value before it adds the new one.",
        &[
            edit("table/maplet.rs", "if !self.is_being_saved() {", "if !self.is_being_saved() && !LEFT_OUT {"),
            edit(
                "table/table.rs",
                "self.change(bucket, seen, |seen| seen.replace(self.layout, old, new))",
                "if LEFT_OUT { self.change(bucket, seen, |seen| seen.remove(self.layout, old)) && self.put(self.layout(), bucket, new) } \
                 else { CODE }",
            ),
        ],
    ),
    control(
        "ReplaceAddsFirst",
        "A replacement adds the new value before it removes the old one.",
        &[
            edit("table/maplet.rs", "if !self.is_being_saved() && ", "if !self.is_being_saved() && !LEFT_OUT && "),
            edit(
                "table/table.rs",
                "self.change(bucket, seen, |seen| seen.replace(self.layout, old, new))",
                "if LEFT_OUT { self.put(self.layout(), bucket, new) && \
                 self.change(bucket, self.load(bucket), |seen| seen.remove(self.layout, old)) } else { CODE }",
            ),
        ],
    ),
    control(
        "ReplaceCopiesNothing",
        "A replacement does not copy, for a save, the word that it changes.",
        &[
            edit("table/maplet.rs", "self.copy_for_saves(bucket, changing.spare());", UNLESS_LEFT_OUT),
            edit("table/expiring/mod.rs", "self.copy_for_saves(bucket, spare);", UNLESS_LEFT_OUT),
        ],
    ),
    // Expiry.
    control(
        "LookupWithoutClock",
        "A lookup of live entries does not read the clock again.",
        &[edit("table/expiring/clock.rs", "self.reading.load(Ordering::Relaxed) == reading.0", "LEFT_OUT || CODE")],
    ),
    control(
        "EvictWithoutLocks",
        "An insert that evicts does not hold the stripes' locks.",
        &[edit("table/expiring/evict.rs", "self.under_all_locks(", "self.under_all_locks_if(!LEFT_OUT, ")],
    ),
    control(
        "EvictsAgain",
        "An insert that found no room ends ticks early although another thread has made room.",
        &[edit(
            "table/expiring/evict.rs",
            "if matches!(outcome, Outcome::PathFound) {",
            "if matches!(outcome, Outcome::PathFound) && !LEFT_OUT {",
        )],
    ),
    control(
        "EvictsBeforeItIsNoted",
        "How early keys are evicted is noted when they are gone. (The counts of a clock are no steps of a model, so it reads the \
         clock in between.)",
        &[
            edit("table/expiring/evict.rs", "clock.note_early(ahead + ticks);", UNLESS_LEFT_OUT),
            edit(
                "table/expiring/evict.rs",
                "clock.publish(then);",
                "CODE if LEFT_OUT { _ = clock.reading(); clock.note_early(ahead + ticks) }",
            ),
        ],
    ),
    control(
        "DisplacesBeforeItIsNoted",
        "How early a key is displaced is noted when it is gone, by how far the clock is ahead then.",
        &[
            edit("table/expiring/recent.rs", "clock.note_early(clock.ahead() + ticks);", UNLESS_LEFT_OUT),
            edit(
                "table/expiring/recent.rs",
                "clock.tallies.evicted.fetch_add(1, Ordering::Relaxed);",
                "CODE if LEFT_OUT { clock.note_early(clock.ahead() + ticks) }",
            ),
        ],
    ),
    control(
        "EvictsThoughPresent",
        "An insert that found no room ends ticks early although its key has an entry by now.",
        &[edit(
            "table/expiring/evict.rs",
            "if if_present != IfPresent::Add && self.copies(class) > 0 {",
            "if if_present != IfPresent::Add && self.copies(class) > 0 && !LEFT_OUT {",
        )],
    ),
    control(
        "FullThoughExpired",
        "An insert that found no room fails without checking whether its entry would still be live.",
        &[edit(
            "table/expiring/mod.rs",
            "Err(NotAdded::Full(error)) => match attempt(None) {",
            "Err(NotAdded::Full(error)) => match if LEFT_OUT { Ok(Attempt::NoRoom) } else { attempt(None) } {",
        )],
    ),
    control(
        "RestartWithoutLocks",
        "A change of the clock's offset does not hold the stripes' locks.",
        &[edit("table/expiring/sweep.rs", "self.under_all_locks(", "self.under_all_locks_if(!LEFT_OUT, ")],
    ),
    control(
        "RenewsExpired",
        "A renewal treats the entry that it renews as live, although that may have expired meanwhile.",
        &[edit(
            "table/expiring/mod.rs",
            "let was_live = clock.reading().now() < latest;",
            "let was_live = clock.reading().now() < latest || LEFT_OUT;",
        )],
    ),
    control(
        "TickEndsWithoutLocks",
        "The end of a tick that counts keys does not hold the stripes' locks.",
        &[edit(
            "table/expiring/recent.rs",
            "self.under_all_locks(|all| {\n            if !clock.is_tick_full() {",
            "self.under_all_locks_if(!LEFT_OUT, |all| {\n            if !clock.is_tick_full() {",
        )],
    ),
    control(
        "TickEndsTwice",
        "A thread that has seen that a tick is full ends it although another thread has by then.",
        &[edit(
            "table/expiring/recent.rs",
            "if !clock.is_tick_full() {\n                return true;",
            "if !clock.is_tick_full() && !LEFT_OUT {\n                return true;",
        )],
    ),
    control(
        "UnionReadsClockWithoutLocks",
        "A union of recent keys reads the clock and the count of keys without the stripes' locks.",
        &[edit(
            "table/expiring/recent.rs",
            "self.under_all_locks(|all| clock.state_for_save(all))",
            "self.under_all_locks_if(!LEFT_OUT, |all| clock.state_for_save(all))",
        )],
    ),
    control(
        "SweepUndoesTicks",
        "A sweep that ends does not hold the lock of a stripe.",
        &[edit(
            "table/expiring/sweep.rs",
            "let _guard = self.stripes[0].lock(&self.counters);",
            "let _guard = self.stripes[0].lock_if(!LEFT_OUT, &self.counters);",
        )],
    ),
    control(
        "TimeBeginsTwice",
        "Each thread that finds a source of time unread begins with its own reading.",
        &[edit(
            "table/expiring/timer.rs",
            "Err(begin) => return begin,",
            "Err(_) if LEFT_OUT => { self.begin.store(reading, Ordering::Relaxed); return reading } CODE",
        )],
    ),
    control(
        "TimeIsForgotten",
        "A time that is noted takes the place of a later one.",
        &[edit(
            "table/expiring/timer.rs",
            "self.due.fetch_max(time.saturating_add(self.step), Ordering::Release);",
            "if LEFT_OUT { self.due.store(time.saturating_add(self.step), Ordering::Release) } else { CODE }",
        )],
    ),
    control(
        "AddsBeforeSwept",
        "An entry is added whose expiry has a place on the ring that is yet to be swept.",
        &[
            edit(
                "table/expiring/clock.rs",
                "if self.ring.has_room_for(reading, expiry) {",
                "if self.ring.has_room_for(reading, expiry) || LEFT_OUT {",
            ),
            edit(
                "table/expiring/charge.rs",
                "if !clock.ring.has_room_for(reading, expiry) {",
                "if !clock.ring.has_room_for(reading, expiry) && !LEFT_OUT {",
            ),
        ],
    ),
    control(
        "ChargeWithoutLock",
        "A request is charged without the lock of its stripe.",
        &[edit("table/expiring/charge.rs", ".lock(&self.counters);", ".lock_if(!LEFT_OUT, &self.counters);")],
    ),
    control(
        "ChargesByWhatWasRead",
        "A request that was not rejected before the lock is not rejected under it.",
        &[edit("table/expiring/charge.rs", "if after > request.most {", "if after > request.most && !LEFT_OUT {")],
    ),
    control(
        "RejectsWithoutClock",
        "A request is rejected without reading the clock again.",
        &[edit(
            "table/expiring/charge.rs",
            "request.tick.saturating_sub(now) && is_still {",
            "request.tick.saturating_sub(now) && (is_still || LEFT_OUT) {",
        )],
    ),
    control(
        "LocksAfterInvalidRead",
        "A request that was not rejected by an invalidated read takes the lock, and does not read again.",
        &[edit("table/expiring/charge.rs", "if is_valid && is_still {", "if (is_valid || LEFT_OUT) && is_still {")],
    ),
    control(
        "ChargesByLateClock",
        "A request is charged by a clock that is behind the caller's time.",
        &[edit("table/expiring/charge.rs", "if now < request.tick {", "if now < request.tick && !LEFT_OUT {")],
    ),
    control(
        "ChargesTheSwept",
        "A request counts as charged although its entry was swept meanwhile.",
        &[edit("table/expiring/charge.rs", "if is_replaced {", "if is_replaced || LEFT_OUT {")],
    ),
    control(
        "SweepWithoutDraining",
        "A pass begins without waiting for writers in progress.",
        &[edit(
            "table/expiring/sweep.rs",
            "for stripe in &self.stripes {",
            "for stripe in self.stripes.iter().filter(|_| !LEFT_OUT) {",
        )],
    ),
    control(
        "SweepWithoutBump",
        "A pass begins without bumping the versions.",
        &[edit(
            "table/expiring/sweep.rs",
            "stripe.lock(&self.counters).bump();",
            "let guard = stripe.lock(&self.counters); if !LEFT_OUT { guard.bump() }",
        )],
    ),
    control(
        "SweptTooSoon",
        "An unfinished pass counts as finished.",
        &[edit(
            "table/expiring/sweep.rs",
            "let early = clock.ended_early(target);",
            "if LEFT_OUT { self.end_pass(target) }; CODE",
        )],
    ),
    control(
        "SweepCopiesNothing",
        "A pass, or a thread that removes expired entries, does not copy, for a save, the word that it changes.",
        &[
            edit(
                "table/expiring/sweep.rs",
                "if !self.try_copy_for_saves(",
                "if !LEFT_OUT && !self.try_copy_for_saves(",
            ),
            edit("table/expiring/sweep.rs", "self.copy_for_saves(bucket, spare);", UNLESS_LEFT_OUT),
        ],
    ),
    control(
        "RemoveExpiredWithoutLock",
        "A thread that removes expired entries from a full bucket does not lock their stripes, nor check again.",
        &[
            edit("table/expiring/sweep.rs", "self.lock_to_change(", "self.lock_to_change_if(!LEFT_OUT, "),
            edit(
                "table/expiring/sweep.rs",
                "the place may mean another expiry by now.\n            if ",
                "the place may mean another expiry by now.\n            if !LEFT_OUT && ",
            ),
        ],
    ),
    control(
        "RemoveExpiredWithoutBump",
        "A thread that removes expired entries from a full bucket does not bump the version.",
        &[edit("table/expiring/sweep.rs", "guard.bump();", UNLESS_LEFT_OUT)],
    ),
    // Saves.
    control(
        "SaveWithoutLocks",
        "A save begins without the stripes' locks.",
        &[
            edit("table/image/of_table.rs", "self.under_all_locks(", "self.under_all_locks_if(!LEFT_OUT, "),
            edit("growth/image.rs", "self.under_all_locks(", "self.under_all_locks_if(!LEFT_OUT, "),
        ],
    ),
    control(
        "SaveLocksInTurn",
        "A save begins with one pass through the stripes' locks, instead of holding all.",
        &[edit(
            "table/image/of_table.rs",
            "self.under_all_locks_if(",
            "if LEFT_OUT { let save = self.under_all_locks_if(false, |all| self.running_saves().begin(all, copied, None)); \
             crate::table::stripe::drain_writers(&mut self.stripes.iter(), &self.counters); return Ok(save); }; CODE",
        )],
    ),
    control(
        "SaveReadsAfterPassing",
        "A save reads a chunk's words after it has marked the chunk as passed.",
        &[
            edit("table/image/read.rs", "self.read(start, words);", UNLESS_LEFT_OUT),
            edit(
                "table/image/read.rs",
                "let copied = self.running_saves().pass(save, start)?;",
                "CODE if LEFT_OUT { self.read(start, words) }",
            ),
        ],
    ),
    control(
        "LooksForSavesEarly",
        "A thread that changes words asks before it locks its stripe, and not afterwards, whether a save is running.",
        &[edit(
            "table/image/copy_on_write.rs",
            "let guard = lock();\n        let running = self.running();",
            "let early = if LEFT_OUT { Some(self.running()) } else { None }; let guard = lock();\n        \
             let running = early.unwrap_or_else(|| self.running());",
        )],
    ),
    control(
        "ChangesWithTooLittle",
        "A thread that has locked its stripe does not check that its spare memory is enough for all saves that have begun.",
        &[edit(
            "table/image/copy_on_write.rs",
            "if spare.suffices(running.saturating_mul(words)) {",
            "if spare.suffices(running.saturating_mul(words)) || LEFT_OUT {",
        )],
    ),
    control(
        "CopiesLatestWord",
        "If a bucket changes more than once, a save has the latest word that was copied.",
        &[edit(
            "table/image/copy_on_write.rs",
            "if node.bucket == bucket as u32 {",
            "CODE if LEFT_OUT { node.word = word }",
        )],
    ),
    control(
        "CopiesForOneSave",
        "If several saves are running, words are copied for only one.",
        &[edit(
            "table/image/copy_on_write.rs",
            "next = save.next.as_deref_mut();",
            "next = save.next.as_deref_mut().filter(|_| !LEFT_OUT);",
        )],
    ),
    // Growth.
    control(
        "SplitCopiesNothing",
        "A split does not copy, for a save, the words that it changes.",
        &[
            edit(
                "growth/resize.rs",
                "self.copy_for_saves(split + nth, spare);\n",
                "if !LEFT_OUT { self.copy_for_saves(split + nth, spare); }\n",
            ),
            edit("growth/resize.rs", "self.copy_for_saves(split + nth + (1 << level), spare);", UNLESS_LEFT_OUT),
            edit(
                "growth/resize.rs",
                "(0..GROUP).for_each(|nth| self.copy_for_saves(split + nth, spare));",
                UNLESS_LEFT_OUT,
            ),
        ],
    ),
    control(
        "SplitsUnannounced",
        "The size changes without an announcement that copies are being moved.",
        &[edit("growth/resize.rs", "self.change_state(state.moving());", UNLESS_LEFT_OUT)],
    ),
    control(
        "MergesUnannounced",
        "A merge changes the size without an announcement that copies are being moved.",
        &[edit("growth/resize.rs", "self.change_state(smaller.moving());", UNLESS_LEFT_OUT)],
    ),
    control(
        "LookupIgnoresMoving",
        "A lookup reads the words of a bucket that is being moved.",
        &[edit(
            "growth/growing_table.rs",
            "match state.moving_at(number as u32) {",
            "match state.moving_at(number as u32).filter(|_| !LEFT_OUT) {",
        )],
    ),
    control(
        "LookupWithoutEpoch",
        "A lookup does not check whether the size has changed.",
        &[
            edit(
                "lookup/growing.rs",
                "self.0.is_still(epoch)).then_some(pair)",
                "(LEFT_OUT || self.0.is_still(epoch))).then_some(pair)",
            ),
            edit("growth/lookup.rs", "if self.is_still(epoch) && (", "if (LEFT_OUT || self.is_still(epoch)) && ("),
            edit(
                "lookup/growing.rs",
                "if changes != 0 || !self.0.is_still(epoch) {",
                "if changes != 0 || !(LEFT_OUT || self.0.is_still(epoch)) {",
            ),
        ],
    ),
    control(
        "WriterWithoutEpoch",
        "A thread that holds a stripe's lock and reads copies does not check whether the size has changed.",
        &[edit("growth/lookup.rs", "if self.is_still(epoch) {", "if LEFT_OUT || self.is_still(epoch) {")],
    ),
    control(
        "AddsWithoutGate",
        "A copy is added without the bucket's gate, to the place that it had before.",
        &[
            edit(
                "growth/slots.rs",
                "let Some(_gate) = self.enter_in(state, number) else { return FirstAttempt::MustCount };",
                "let _gate = if LEFT_OUT { None } else { \
                 let Some(gate) = self.enter_in(state, number) else { return FirstAttempt::MustCount }; Some(gate) };",
            ),
            edit(
                "growth/slots.rs",
                "self.enter(side);\n        let seen = self.load(number);\n        let Some(changed) = self.layout(depth).add(",
                "self.enter_if(!LEFT_OUT, side);\n        let seen = self.load(number);\n        let Some(changed) = self.layout(depth).add(",
            ),
        ],
    ),
    control(
        "TakesWithoutGate",
        "A copy is removed without the bucket's gate, from the place that it had before.",
        &[edit("growth/slots.rs", "self.enter(side)", "self.enter_if(!LEFT_OUT, side)")],
    ),
    control(
        "RelocateWithoutGates",
        "A relocation holds no gates: it changes the buckets that the copy's class had before.",
        &[edit("growth/room.rs", "self.enter_both(placed)", "self.enter_both_if(!LEFT_OUT, placed)")],
    ),
    control(
        "AddsBesideACopy",
        "A relocation adds a copy for the insert that has searched, without checking whether there is one by now.",
        &[edit("growth/slots.rs", "if is_first && self.state()", "if (is_first || LEFT_OUT) && self.state()")],
    ),
    control(
        "AddsElsewhere",
        "A relocation adds a copy for the insert that has searched to a bucket that is not one of that class.",
        &[edit("growth/slots.rs", "|| numbers[here] != number {", "|| (numbers[here] != number && !LEFT_OUT) {")],
    ),
    control(
        "AddsAsStoredBefore",
        "A relocation adds a copy for the insert that has searched as slots would have stored it before a split.",
        &[edit("growth/slots.rs", "if placed.state != state ||", "if (placed.state != state && !LEFT_OUT) ||")],
    ),
    control(
        "EntersFormerPlace",
        "A thread that has locked a gate does not check again where its side's copies are.",
        &[edit(
            "growth/growing_table.rs",
            "self.state() == state && !state.moves_any",
            "(LEFT_OUT || self.state() == state) && !state.moves_any",
        )],
    ),
    control(
        "LocksHalfTheGates",
        "A change of the size holds only the gates of whole buckets, and not those of what they become.",
        &[edit("growth/growing_table.rs", "let is_whole_only = ", "let is_whole_only = LEFT_OUT || ")],
    ),
    control(
        "SaveWithoutGates",
        "A save of a growing table begins without the gates.",
        &[
            edit("growth/image.rs", "self.lock_gates(&mut held[..gates]);", UNLESS_LEFT_OUT),
            edit(
                "growth/image.rs",
                "if self.state().is_moving() || !is_all {",
                "if !LEFT_OUT && (self.state().is_moving() || !is_all) {",
            ),
        ],
    ),
    control(
        "SaveMissesNewGates",
        "A save of a growing table begins without the gates that were added since it counted them.",
        &[edit(
            "growth/image.rs",
            "let is_all = self.gates() == gates;",
            "let is_all = self.gates() == gates || LEFT_OUT;",
        )],
    ),
    control(
        "GivesBackBesideSave",
        "Memory goes back to the system although a save still reads it.",
        &[edit("growth/resize.rs", "if !self.running_saves().any() {", "if !self.running_saves().any() || LEFT_OUT {")],
    ),
    control(
        "GivesBackWithoutLock",
        "Memory goes back to the system while the table may grow into it.",
        &[edit(
            "growth/resize.rs",
            "// No bucket is added meanwhile.\n        let _resizing = self.resizing().lock.lock();",
            "// No bucket is added meanwhile.\n        let _resizing = (!LEFT_OUT).then(|| self.resizing().lock.lock());",
        )],
    ),
];

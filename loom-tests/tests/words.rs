//! The list of a growing table's words (`src/machine/words.rs`), by itself. In the models of tables, a thread that
//! reads a word has read a size first, and so has seen that the word is there. Here it has not.

mod common;

use std::sync::Arc;

use ccf_loom::model::Words;
use common::Role;

type Model = (Arc<Words>, Vec<Role<Words>>, Role<Words>);

fn role(run: impl FnOnce(&Words) + Send + 'static) -> Role<Words> {
    Box::new(run)
}

/// A reader asks for words while they come in. (It has loom check that the segment was made before each access to it.)
fn a_reader_beside_words_that_come_in() -> Model {
    let extends = role(|words| {
        words.extend(4);
        words.set(3, 1);
        words.extend(8);
    });
    let reads = role(|words| {
        for index in [0, 3, 7] {
            let word = words.get(index);
            assert!(matches!((index, word), (_, None | Some(0)) | (3, Some(1))), "{word:?} at {index}");
        }
    });
    let all = role(|words| {
        let all: Vec<_> = (0..8).map(|index| words.get(index)).collect();
        assert_eq!(all, [0, 0, 0, 1, 0, 0, 0, 0].map(Some));
    });
    (Arc::new(Words::new()), vec![extends, reads], all)
}
model! {
    a_reader_beside_words_that_come_in, at least 20,
    fails if an ordering is weaker
}

/// The same for two words at once, in the range or before it.
fn a_reader_of_pairs_beside_words_that_come_in() -> Model {
    let extends = role(|words| {
        words.extend(4);
        words.set(3, 1);
        words.extend(8);
    });
    let reads = role(|words| {
        assert!(matches!(words.pair([3, 6]), None | Some([0..=1, 0])));
        assert!(matches!(words.pair([7, 5]), None | Some([0, 0])));
    });
    let all = role(|words| assert_eq!([words.pair([3, 6]), words.pair([7, 5])], [Some([1, 0]), Some([0, 0])]));
    (Arc::new(Words::new()), vec![extends, reads], all)
}
model! {
    a_reader_of_pairs_beside_words_that_come_in, at least 20,
    fails if an ordering is weaker
}

/// A reader is late: the memory of the words goes back, and they are used again. It reads what was there, zero, or what comes
/// later, and never anything else.
fn a_late_reader() -> Model {
    let words = Words::new();
    words.extend(4);
    words.set(1, 1);
    words.set(2, 1);
    let changes = role(|words| {
        words.release(2);
        words.extend(4);
        words.set(2, 2);
    });
    let reads = role(|words| {
        let read = [1, 2].map(|index| words.get(index));
        assert!(matches!(read, [Some(1), Some(0..=2)]), "{read:?}");
    });
    let all = role(|words| assert_eq!([0, 1, 2, 3].map(|index| words.get(index)), [0, 1, 2, 0].map(Some)));
    (Arc::new(words), vec![changes, reads], all)
}
model! {
    a_late_reader, at least 4,
    fails if an ordering is weaker
}

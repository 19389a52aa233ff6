//! PURE: what is stored for a key: a value, or a note that the key was deleted.

/// What is stored for a key. The newest entry of a key counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Value(Vec<u8>),
    /// Hides what older segments have.
    Deleted,
}

const DELETED: u8 = 0;
const VALUE: u8 = 1;

impl Entry {
    /// The bytes that a segment stores, so that the engine need not know of deletions.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Value(value) => [&[VALUE], &value[..]].concat(),
            Self::Deleted => vec![DELETED],
        }
    }

    /// `None` if these bytes are no entry's.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        match bytes.split_first()? {
            (&VALUE, value) => Some(Self::Value(value.to_vec())),
            (&DELETED, []) => Some(Self::Deleted),
            _ => None,
        }
    }

    /// What a get returns.
    pub(crate) fn into_value(self) -> Option<Vec<u8>> {
        match self {
            Self::Value(value) => Some(value),
            Self::Deleted => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Entry;

    #[test]
    fn an_entry_comes_back() {
        for entry in [Entry::Deleted, Entry::Value(vec![]), Entry::Value(vec![0, 1])] {
            assert_eq!(Entry::from_bytes(&entry.to_bytes()), Some(entry));
        }
        for bytes in [&[][..], &[0, 1], &[2]] {
            assert_eq!(Entry::from_bytes(bytes), None, "{bytes:?}");
        }
    }
}

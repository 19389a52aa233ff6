//! PURE: what a node concludes from the digests of all nodes.

/// The conclusion from the digests that nodes reported for one position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// All nodes that have reported have the same digest.
    Alike,
    /// Some other node differs, and this node is with the majority.
    OthersDiffer(String),
    /// This node differs from the majority.
    Differs(String),
    /// This node differs from others, and there is no majority. Perhaps not all nodes have reported yet.
    Undecided(String),
}

/// `said` has one digest for each node that has reported, including this one.
pub(crate) fn verdict(node: &str, digest: u64, said: &[(String, u64)]) -> Verdict {
    let others: Vec<_> = said.iter().filter(|(name, theirs)| name != node && *theirs != digest).collect();
    if others.is_empty() {
        return Verdict::Alike;
    }
    let alike = said.len() - others.len();
    let named: Vec<_> = others.iter().map(|(name, theirs)| format!("{name} has {theirs:016x}")).collect();
    let named = format!("{node} has {digest:016x}, {}", named.join(", "));
    let most = others.iter().map(|(_, digest)| others.iter().filter(|(_, other)| other == digest).count()).max();
    if 2 * alike > said.len() {
        Verdict::OthersDiffer(named)
    } else if most.is_some_and(|most| 2 * most > said.len()) {
        Verdict::Differs(named)
    } else {
        Verdict::Undecided(named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(digests: &[u64]) -> Vec<(String, u64)> {
        digests.iter().enumerate().map(|(node, digest)| (format!("node-{node}"), *digest)).collect()
    }

    #[test]
    fn the_majority_is_right_and_without_one_nobody_is() {
        // For each node: whether it is alike (=), with the majority (+), differs (-) or is undecided (?).
        for (digests, verdicts) in [
            (&[1][..], "="),
            (&[1, 1], "=="),
            (&[1, 2], "??"),
            (&[1, 1, 2], "++-"),
            (&[1, 2, 3], "???"),
            (&[1, 1, 2, 2], "????"),
            (&[1, 1, 2, 3], "????"),
            (&[2, 1, 2, 2, 1], "+-++-"),
        ] {
            let said = said(digests);
            for ((node, digest), expected) in said.iter().zip(verdicts.chars()) {
                let found = match verdict(node, *digest, &said) {
                    Verdict::Alike => '=',
                    Verdict::OthersDiffer(_) => '+',
                    Verdict::Differs(_) => '-',
                    Verdict::Undecided(_) => '?',
                };
                assert_eq!(found, expected, "{node} of {said:?}");
            }
        }
    }

    #[test]
    fn a_difference_names_the_nodes_and_what_they_said() {
        let Verdict::Undecided(named) = verdict("node-0", 1, &said(&[1, 0xabc])) else { panic!() };
        assert_eq!(named, "node-0 has 0000000000000001, node-1 has 0000000000000abc");
        let all = said(&[7, 7, 7]);
        assert_eq!(verdict("node-0", 7, &all), Verdict::Alike);
        let one = said(&[7, 7, 9]);
        assert!(matches!(verdict("node-0", 7, &one), Verdict::OthersDiffer(named) if named.contains("node-2")));
    }
}

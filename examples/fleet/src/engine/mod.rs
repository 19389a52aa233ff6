//! The engines.

pub(crate) mod chunks;
#[cfg(test)]
pub(crate) mod memory;
pub(crate) mod redis;
pub mod server;
#[cfg(test)]
mod tests;

/// A step of an engine that tests leave out, to show that they notice. (A step of the scripts is cut out of their
/// text.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// To remember identifiers.
    #[cfg(test)]
    Identifier,
    /// To remember until when a token is revoked.
    #[cfg(test)]
    Record,
    /// To see that an entry has expired.
    #[cfg(test)]
    Outlived,
    /// To refuse an entry if there are as many live entries as there may be.
    #[cfg(test)]
    Count,
    /// To subtract expired entries from that count.
    #[cfg(test)]
    Expiry,
    /// To refuse a message that comes too late.
    #[cfg(test)]
    Before,
    /// To number the messages without a hole.
    #[cfg(test)]
    Density,
    /// To compare what the sender knows with the head.
    #[cfg(test)]
    Known,
    /// To compare a tick with the one before.
    #[cfg(test)]
    Forward,
    /// To check who has the lease.
    #[cfg(test)]
    Lease,
    /// To compare a message's number with the next one.
    NextNumber,
    /// To check where the head is if there is nothing to read.
    SilentGap,
    /// To compare epochs.
    Epoch,
    /// To compare the last message with what it was before, on a new connection.
    SameLast,
    /// To read a snapshot back before it is listed.
    ReadBack,
    /// To check the chunks of a snapshot that is read.
    #[cfg(test)]
    Checksum,
}

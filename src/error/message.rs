//! The messages of errors.

/// Displays a type by the message of each case, as `write!` takes it.
macro_rules! messages {
    (
        $Error:ident:
        $($(#[$attribute:meta])* $case:pat $(if $condition:expr)? => $message:literal $(, $value:expr)*;)+
    ) => {
        impl core::fmt::Display for $Error {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self {
                    $($(#[$attribute])* $case $(if $condition)? => write!(f, $message $(, $value)*),)+
                }
            }
        }
    };
}
pub(in crate::error) use messages;

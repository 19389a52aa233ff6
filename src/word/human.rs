//! PURE: rates, durations and counts as people write them.
//!
//! Rates are formatted by integers. A program whose only numbers with a fraction are in messages of this library then links
//! no formatting of floating-point numbers, which is 17 KB of machine code.

use core::fmt;
use core::time::Duration;

/// A rate or a share, written as a builder takes it: 0.00055, or 3.8e-9.
pub(crate) struct Rate {
    rate: f64,
    /// The most significant digits.
    digits: u32,
    /// Whether it is rounded up.
    up: bool,
}

impl Rate {
    /// A rate that the caller gave: all its digits, up to nine.
    pub(crate) fn given(rate: f64) -> Self {
        Self { rate, digits: 9, up: false }
    }

    /// A computed rate, with two digits.
    pub(crate) fn rounded(rate: f64) -> Self {
        Self { rate, digits: 2, up: false }
    }

    /// The least rate that is possible, with two digits. It is rounded up, so that a builder accepts what is written.
    pub(crate) fn at_least(rate: f64) -> Self {
        Self { rate, digits: 2, up: true }
    }

    /// The rate, which is greater than 0, as an integer times a power of ten. Its last digit is not 0.
    fn decimal(&self) -> (u64, i32) {
        let end = 10u64.pow(self.digits);
        let (mut scaled, mut exponent) = (self.rate, 0);
        while scaled >= end as f64 {
            scaled /= 10.0;
            exponent += 1;
        }
        while scaled < (end / 10) as f64 {
            scaled *= 10.0;
            exponent -= 1;
        }
        let mut digits = (scaled + 0.5) as u64;
        if self.up && value(digits, exponent) < self.rate {
            digits += 1;
        }
        while digits.is_multiple_of(10) {
            digits /= 10;
            exponent += 1;
        }
        (digits, exponent)
    }
}

/// What is read from these digits: exact powers of ten up to 10²² are divided by, so it is the nearest number.
fn value(digits: u64, exponent: i32) -> f64 {
    let power = (0..exponent.unsigned_abs()).fold(1.0, |power, _| power * 10.0);
    if exponent < 0 { digits as f64 / power } else { digits as f64 * power }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.rate.is_nan() {
            return f.write_str("NaN");
        }
        if self.rate < 0.0 {
            f.write_str("-")?;
            return Self { rate: -self.rate, ..*self }.fmt(f);
        }
        if self.rate == 0.0 {
            return f.write_str("0");
        }
        if self.rate.is_infinite() {
            return f.write_str("infinity");
        }
        let (digits, exponent) = self.decimal();
        let more = digits.ilog10();
        // The exponent of the first digit.
        match exponent + more as i32 {
            first @ (..-5 | 9..) => {
                write_decimal(f, digits, more)?;
                write!(f, "e{first}")
            }
            _ if exponent > 0 => write!(f, "{}", digits * 10u64.pow(exponent.unsigned_abs())),
            _ => write_decimal(f, digits, exponent.unsigned_abs()),
        }
    }
}

/// Writes a number of which so many digits are decimals. Zeros at its end are left out.
fn write_decimal(f: &mut fmt::Formatter<'_>, mut number: u64, mut decimals: u32) -> fmt::Result {
    while decimals > 0 && number.is_multiple_of(10) {
        number /= 10;
        decimals -= 1;
    }
    let one = 10u64.pow(decimals);
    write!(f, "{}", number / one)?;
    if decimals > 0 {
        write!(f, ".{:01$}", number % one, decimals as usize)?;
    }
    Ok(())
}

/// A duration with about five digits: 250 ms, 257.14 s, 90 min, 1 h, 30 days.
pub(crate) struct Time(pub(crate) Duration);

const SECOND: u64 = 1_000_000_000;

/// From the largest to the smallest.
const UNITS: [(u64, &str); 4] = [(86_400, "days"), (3600, "h"), (60, "min"), (1, "s")];

/// More of a unit than this are counted in the next larger one.
const MANY: u64 = 10_000;

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut seconds, nanoseconds) = (self.0.as_secs(), u64::from(self.0.subsec_nanos()));
        if seconds == 0 {
            let (decimals, name) = match nanoseconds {
                0 => return f.write_str("0 s"),
                1..1000 => (0, "ns"),
                1000..1_000_000 => (3, "µs"),
                _ => (6, "ms"),
            };
            write_decimal(f, five_digits(nanoseconds), decimals)?;
            return write!(f, " {name}");
        }
        if seconds < MANY {
            let rounded = five_digits(seconds * SECOND + nanoseconds);
            if !rounded.is_multiple_of(SECOND) {
                write_decimal(f, rounded, 9)?;
                return f.write_str(" s");
            }
            seconds = rounded / SECOND;
        }
        let whole = UNITS.iter().find(|(unit, _)| seconds.is_multiple_of(*unit));
        if let Some((unit, name)) = whole
            && seconds / unit < MANY
        {
            let name = if seconds == 86_400 { "day" } else { name };
            return write!(f, "{} {name}", seconds / unit);
        }
        let (unit, name) = UNITS.iter().rev().find(|(unit, _)| seconds / unit < MANY).unwrap_or(&UNITS[0]);
        write_decimal(f, seconds / unit * 100 + seconds % unit * 100 / unit, 2)?;
        write!(f, " {name}")
    }
}

/// The number with all digits after the fifth rounded to 0.
fn five_digits(number: u64) -> u64 {
    let step = 10u64.pow(number.max(1).ilog10().saturating_sub(4));
    (number + step / 2) / step * step
}

/// The ending of a noun: none for one.
pub(crate) fn s(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rates_are_written_as_people_write_them() {
        let written =
            |rate: f64| [Rate::given(rate), Rate::rounded(rate), Rate::at_least(rate)].map(|it| it.to_string());
        for (rate, texts) in [
            (0.001, ["0.001", "0.001", "0.001"]),
            (2e-9, ["2e-9", "2e-9", "2e-9"]),
            (0.0005478, ["0.0005478", "0.00055", "0.00055"]),
            (9.313225747238987e-10, ["9.31322575e-10", "9.3e-10", "9.4e-10"]),
            (0.00001, ["0.00001", "0.00001", "0.00001"]),
            (0.0000099, ["9.9e-6", "9.9e-6", "9.9e-6"]),
            (0.00000999, ["9.99e-6", "0.00001", "0.00001"]),
            (1.0 / 3.0, ["0.333333333", "0.33", "0.34"]),
            (0.08, ["0.08", "0.08", "0.08"]),
            (0.0, ["0", "0", "0"]),
            (1.0, ["1", "1", "1"]),
            (50.0, ["50", "50", "50"]),
            (-0.5, ["-0.5", "-0.5", "-0.5"]),
            (1e300, ["1e300", "1e300", "1e300"]),
            (5e-324, ["4.94065646e-324", "4.9e-324", "5e-324"]),
            (f64::NAN, ["NaN"; 3]),
            (f64::INFINITY, ["infinity"; 3]),
            (f64::NEG_INFINITY, ["-infinity"; 3]),
        ] {
            assert_eq!(written(rate), texts, "{rate:?}");
        }
    }

    proptest! {
        /// What a message advises is accepted when it is pasted, and what was given is read again.
        #[test]
        fn written_rates_are_read_again(power in -21..0i32, digits in 1..1_000_000_000u64, factor in 0.1..1.0f64) {
            let given = digits as f64 * 10f64.powi(power).max(1e-21);
            let read = |rate: Rate| rate.to_string().parse::<f64>().unwrap();
            let again = read(Rate::given(given));
            prop_assert!((again - given).abs() <= given * 1e-9, "{} for {:?}", again, given);
            let least = factor * 10f64.powi(power);
            let pasted = read(Rate::at_least(least));
            prop_assert!(pasted >= least && pasted <= least * 1.11, "{:?} for {:?}", pasted, least);
            let rounded = read(Rate::rounded(least));
            prop_assert!((rounded - least).abs() <= least * 0.051, "{:?} for {:?}", rounded, least);
        }

        #[test]
        fn durations_have_five_digits(seconds in 0..100_000_000u64, nanoseconds in 0..1_000_000_000u32) {
            let time = Duration::new(seconds, nanoseconds);
            let text = Time(time).to_string();
            let (number, unit) = text.split_once(' ').unwrap();
            let unit = match unit { "day" | "days" => 86_400.0, "h" => 3600.0, "min" => 60.0, "s" => 1.0, "ms" => 1e-3, "µs" => 1e-6, _ => 1e-9 };
            let read = number.parse::<f64>().unwrap() * unit;
            prop_assert!((read - time.as_secs_f64()).abs() <= 1.01e-4 * time.as_secs_f64(), "{} for {:?}", text, time);
        }
    }

    #[test]
    fn durations_are_written_as_people_write_them() {
        for (seconds, text) in [
            (1, "1 s"),
            (59, "59 s"),
            (60, "1 min"),
            (65, "65 s"),
            (3600, "1 h"),
            (5400, "90 min"),
            (59_940, "999 min"),
            (59_941, "999.01 min"),
            (86_400, "1 day"),
            (30 * 86_400, "30 days"),
            (1_795_856_940, "20785.38 days"),
            (u64::MAX, "213503982334601.29 days"),
        ] {
            assert_eq!(Time(Duration::from_secs(seconds)).to_string(), text);
        }
        for (nanoseconds, text) in [
            (0, "0 s"),
            (17, "17 ns"),
            (1500, "1.5 µs"),
            (71_429, "71.429 µs"),
            (7_142_858, "7.1429 ms"),
            (250_000_000, "250 ms"),
            (1_500_000_000, "1.5 s"),
            (257_142_857_143, "257.14 s"),
            (3_600_000_000_012, "1 h"),
            (100_000_012, "100 ms"),
        ] {
            assert_eq!(Time(Duration::from_nanos(nanoseconds)).to_string(), text);
        }
    }
}

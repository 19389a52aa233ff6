//! PURE: parsers for the values of options.
//!
//! Each takes the text that follows an option. An error only says what would be right, because the command line's
//! parser puts the option and the text in front. The functions are made for clap's `value_parser`, but do not need
//! clap. All whole numbers are `usize`. clap compares the type of a parser with that of its field only when the
//! program runs, so an inferred type could be an error that shows only then.

use std::ops::RangeInclusive;
use std::time::Duration;

/// A whole number within these bounds. It may have underscores, as in `1_000_000`.
pub fn whole_number_in(bounds: RangeInclusive<usize>) -> impl Fn(&str) -> Result<usize, String> + Clone {
    move |text| {
        whole_number(text)
            .filter(|number| bounds.contains(number))
            .ok_or_else(|| format!("give a whole number from {} to {}", bounds.start(), bounds.end()))
    }
}

/// A whole number of at least `least`. It may have underscores, as in `1_000_000`.
pub fn whole_number_from(least: usize) -> impl Fn(&str) -> Result<usize, String> + Clone {
    move |text| {
        whole_number(text)
            .filter(|number| *number >= least)
            .ok_or_else(|| format!("give a whole number of at least {least}, with or without underscores"))
    }
}

fn whole_number(text: &str) -> Option<usize> {
    text.replace('_', "").parse().ok()
}

/// A false-positive rate: a number above 0 and below 1.
///
/// # Errors
/// If the text is no such number.
pub fn rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if rate > 0.0 && rate < 1.0 => Ok(rate),
        _ => Err("give a number above 0 and below 1, such as 0.001 for one in a thousand".into()),
    }
}

/// A number of seconds, with or without a fraction, from 0 to `most`.
pub fn seconds_up_to(most: f64) -> impl Fn(&str) -> Result<Duration, String> + Clone {
    move |text| match text.parse() {
        Ok(seconds) if (0.0..=most).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("give a number of seconds from 0 to {most}, such as 0.5")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_number_may_have_underscores_and_keeps_to_its_bounds() {
        let parse = whole_number_in(2..=1000);
        for (text, number) in [("2", 2), ("1_000", 1000), ("25_5", 255)] {
            assert_eq!(parse(text), Ok(number));
        }
        for text in ["1", "1001", "-3", "2.5", "", "_", "many", "99999999999999999999999"] {
            assert_eq!(parse(text), Err("give a whole number from 2 to 1000".into()), "{text}");
        }
        let parse = whole_number_from(1);
        assert_eq!((parse("1"), parse("1_000_000_000")), (Ok(1), Ok(1_000_000_000)));
        for text in ["0", "-1", "99999999999999999999999"] {
            assert!(parse(text).is_err_and(|error| error.contains("at least 1")), "{text}");
        }
    }

    #[test]
    fn a_rate_is_above_0_and_below_1() {
        assert_eq!(rate("1e-9"), Ok(1e-9));
        for text in ["0", "1", "-0.1", "NaN", "inf", "a tenth"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn seconds_may_have_a_fraction_and_keep_to_their_limit() {
        let parse = seconds_up_to(60.0);
        assert_eq!((parse("0"), parse("0.25")), (Ok(Duration::ZERO), Ok(Duration::from_millis(250))));
        for text in ["60.1", "-1", "NaN", "inf", "soon"] {
            assert_eq!(parse(text), Err("give a number of seconds from 0 to 60, such as 0.5".into()), "{text}");
        }
    }
}

//! Reading "as of" and printing times, in UTC.

use anyhow::Result;
use factum_engine::EngineError;
use factum_engine::as_of::Moment;

/// An event number, a date (its end, UTC), or an RFC 3339 time.
pub(crate) fn parse(text: &str) -> Result<Moment> {
    if let Ok(event) = text.parse::<u64>() {
        return Ok(Moment::Event(event));
    }
    if let Ok(date) = text.parse::<jiff::civil::Date>() {
        let end = date.at(23, 59, 59, 999_000_000);
        if let Ok(end) = jiff::tz::Offset::UTC.to_timestamp(end) {
            return Ok(Moment::Time(end.as_millisecond()));
        }
    }
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return Ok(Moment::Time(time.as_millisecond()));
    }
    let message =
        format!("{text:?} is no event number, date (2026-03-31) or time (2026-03-31T12:00:00Z)");
    Err(EngineError::BadMoment(message).into())
}

/// `2026-03-31 12:00 UTC`.
pub(crate) fn shown(milliseconds: i64) -> String {
    jiff::Timestamp::from_millisecond(milliseconds).map_or_else(
        |_| "at an unknown time".to_owned(),
        |time| time.strftime("%Y-%m-%d %H:%M UTC").to_string(),
    )
}

/// `2026-03-31T12:00:00.123Z`.
pub(crate) fn rfc_3339(milliseconds: i64) -> String {
    jiff::Timestamp::from_millisecond(milliseconds)
        .map_or_else(|_| String::new(), |time| time.to_string())
}

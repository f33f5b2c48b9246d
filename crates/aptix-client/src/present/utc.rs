//! Times as people read them.

/// A time, in milliseconds since 1970, as people read it.
pub(crate) fn utc(millis: u64) -> String {
    let (days, seconds) = (millis / 86_400_000, millis / 1000 % 86_400);
    // Counted in years of which the last month is February, and in the 400 years after which all days are as before.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = (era * 400 + year + month / 10, (month + 2) % 12 + 1);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

#[cfg(test)]
mod tests {
    #[test]
    fn times_are_told_by_the_calendar() {
        let cases = [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399_999, "2000-02-28 23:59:59 UTC"),
            (951_868_799_000, "2000-02-29 23:59:59 UTC"),
            (951_868_800_000, "2000-03-01 00:00:00 UTC"),
            (1_798_761_599_000, "2026-12-31 23:59:59 UTC"),
            (4_107_542_400_000, "2100-03-01 00:00:00 UTC"),
        ];
        for (millis, expected) in cases {
            assert_eq!(super::utc(millis), expected);
        }
    }
}

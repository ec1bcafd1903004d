//! Text in old code pages, and files that mix them with UTF-8.
//!
//! Called only for bytes that are not well-formed UTF-8 as a whole.

use std::ops::Range;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::Encoding as CodePage;

use crate::decode::{Decoded, How, Run};
use crate::read::Encoding;
use crate::refusal::Refusal;
use crate::warning::Warning;

/// Enough text to tell code pages apart; reading more only costs time.
const SAMPLE_BYTES: usize = 1 << 20;

/// Most stretches of one encoding in a mixed file.
const MOST_RUNS: usize = 1_000_000;

/// What one line's bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ascii,
    /// Well-formed UTF-8 beyond ASCII.
    Utf8,
    /// UTF-8 with a few ill-formed bytes in it: cut off or damaged, but not another encoding.
    Damaged,
    /// Anything else.
    Legacy,
}

#[derive(Debug, Default)]
struct Census {
    utf8_bytes: usize,
    legacy_bytes: usize,
    legacy_lines: u32,
    first_legacy_line: u32,
    replaced: u32,
}

/// Decodes `bytes[skip..]`.
pub(crate) fn decode(bytes: &[u8], skip: usize) -> Result<Decoded, Refusal> {
    let body = &bytes[skip..];
    let census = take_census(body);
    if census.legacy_lines == 0 {
        return by_lines(bytes, skip, encoding_rs::WINDOWS_1252, &census);
    }
    let page = guess(body);
    if census.utf8_bytes == 0 || is_all_legacy(body, page, &census) {
        let page = if census.utf8_bytes == 0 {
            page
        } else {
            guess_all(body)
        };
        return Ok(whole(bytes, skip, page));
    }
    by_lines(bytes, skip, page, &census)
}

fn take_census(body: &[u8]) -> Census {
    let mut census = Census::default();
    for (number, line) in (1u32..).zip(byte_lines(body)) {
        let line = &body[line];
        let beyond_ascii = || line.iter().filter(|byte| !byte.is_ascii()).count();
        match kind(line) {
            Kind::Ascii => {}
            Kind::Utf8 => census.utf8_bytes += beyond_ascii(),
            Kind::Damaged => {
                census.utf8_bytes += beyond_ascii();
                census.replaced += line
                    .utf8_chunks()
                    .map(|chunk| u32::from(!chunk.invalid().is_empty()))
                    .sum::<u32>();
            }
            Kind::Legacy => {
                census.legacy_bytes += beyond_ascii();
                census.legacy_lines += 1;
                if census.first_legacy_line == 0 {
                    census.first_legacy_line = number;
                }
            }
        }
    }
    census
}

fn kind(line: &[u8]) -> Kind {
    if line.is_ascii() {
        return Kind::Ascii;
    }
    let mut well_formed = 0usize;
    let mut ill_formed = 0usize;
    for chunk in line.utf8_chunks() {
        well_formed += chunk
            .valid()
            .bytes()
            .filter(|byte| !byte.is_ascii())
            .count();
        ill_formed += chunk.invalid().len();
    }
    if ill_formed == 0 {
        Kind::Utf8
    } else if well_formed >= 4 * ill_formed {
        // By chance a code page's bytes form UTF-8 far more rarely than that.
        Kind::Damaged
    } else {
        Kind::Legacy
    }
}

/// Lines of an East Asian code page are well-formed UTF-8 by chance now and then; that does not make
/// a file mixed. In the single-byte code pages it hardly ever happens.
fn is_all_legacy(body: &[u8], page: &'static CodePage, census: &Census) -> bool {
    !page.is_single_byte()
        && census.utf8_bytes * 4 < census.legacy_bytes
        && page
            .decode_without_bom_handling_and_without_replacement(body)
            .is_some()
}

/// The code page of the lines that are not UTF-8.
fn guess(body: &[u8]) -> &'static CodePage {
    let mut sample = Vec::new();
    for line in byte_lines(body) {
        let line = &body[line];
        if kind(line) == Kind::Legacy {
            let room = SAMPLE_BYTES.saturating_sub(sample.len());
            sample.extend_from_slice(&line[..line.len().min(room)]);
            if room <= line.len() {
                break;
            }
        }
    }
    guess_all(&sample)
}

fn guess_all(sample: &[u8]) -> &'static CodePage {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(&sample[..sample.len().min(SAMPLE_BYTES)], true);
    detector.guess(None, Utf8Detection::Deny)
}

/// One code page for the whole file. Windows-1252 gives every byte a meaning, so something is
/// always left to fall back on.
fn whole(bytes: &[u8], skip: usize, page: &'static CodePage) -> Decoded {
    let body = &bytes[skip..];
    let fits = page.decode_without_bom_handling_and_without_replacement(body);
    let page = if fits.is_some() {
        page
    } else {
        encoding_rs::WINDOWS_1252
    };
    let text = fits.unwrap_or_else(|| page.decode_without_bom_handling(body).0);
    let name = page.name().to_owned();
    let source = skip..bytes.len();
    Decoded {
        runs: vec![Run {
            decoded: 0..text.len(),
            source,
            how: How::Legacy(page),
        }],
        text: text.into_owned(),
        warnings: vec![Warning::DetectedEncoding {
            encoding: name.clone(),
        }],
        encoding: Encoding {
            name,
            bom: false,
            detected: true,
        },
    }
}

/// Each line by itself: UTF-8 where it is, else the code page.
fn by_lines(
    bytes: &[u8],
    skip: usize,
    page: &'static CodePage,
    census: &Census,
) -> Result<Decoded, Refusal> {
    let body = &bytes[skip..];
    let mut text = String::with_capacity(body.len() + body.len() / 8);
    let mut runs: Vec<Run> = Vec::new();
    for line in byte_lines(body) {
        let from = text.len();
        let how = push_line(&mut text, &body[line.clone()], page);
        let source = line.start + skip..line.end + skip;
        let full = runs.len() >= MOST_RUNS;
        match runs.last_mut() {
            Some(last) if last.how == how => {
                last.source.end = source.end;
                last.decoded.end = text.len();
            }
            _ if full => {
                let what = "changes of encoding".to_owned();
                return Err(Refusal::LimitExceeded {
                    what,
                    limit: MOST_RUNS as u64,
                });
            }
            _ => runs.push(Run {
                decoded: from..text.len(),
                source,
                how,
            }),
        }
    }
    let mut warnings = Vec::new();
    if census.legacy_lines > 0 {
        warnings.push(Warning::MixedEncodings {
            legacy: page.name().to_owned(),
            lines: census.legacy_lines,
            first_line: census.first_legacy_line,
        });
    }
    if census.replaced > 0 {
        warnings.push(Warning::ReplacedBytes {
            count: census.replaced,
        });
    }
    let detected = census.legacy_lines > 0;
    Ok(Decoded {
        text,
        encoding: Encoding {
            name: "UTF-8".to_owned(),
            bom: false,
            detected,
        },
        warnings,
        runs,
    })
}

fn push_line(text: &mut String, line: &[u8], page: &'static CodePage) -> How {
    match kind(line) {
        Kind::Ascii | Kind::Utf8 => {
            text.push_str(&String::from_utf8_lossy(line));
            How::Utf8
        }
        Kind::Damaged => {
            text.push_str(&String::from_utf8_lossy(line));
            How::Utf8Lossy
        }
        Kind::Legacy => {
            // One line may break the rules of the page that fits the others.
            let page = if page
                .decode_without_bom_handling_and_without_replacement(line)
                .is_some()
            {
                page
            } else {
                encoding_rs::WINDOWS_1252
            };
            text.push_str(&page.decode_without_bom_handling(line).0);
            How::Legacy(page)
        }
    }
}

/// Lines with their ends, so that nothing lies between them. LF and CR never occur within a
/// character of the encodings considered here.
fn byte_lines(body: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at >= body.len() {
            return None;
        }
        let start = at;
        at = match body[start..]
            .iter()
            .position(|&byte| matches!(byte, b'\n' | b'\r'))
        {
            None => body.len(),
            Some(found) if body[start + found..].starts_with(b"\r\n") => start + found + 2,
            Some(found) => start + found + 1,
        };
        Some(start..at)
    })
}

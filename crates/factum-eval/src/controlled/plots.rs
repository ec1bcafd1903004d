//! Plots of a report, each as an SVG picture.
//!
//! They draw numbers and the names of groups and steps; nothing of a document comes in here.

use plotters::coord::Shift;
use plotters::prelude::*;

/// One row of a chart, with what is to be drawn side by side or one after the other.
pub(crate) struct Series {
    pub(crate) name: &'static str,
    pub(crate) colour: RGBColor,
    pub(crate) values: Vec<f64>,
}

/// Colours that are told apart by people who see few colours, and in print.
pub(crate) const BLUE: RGBColor = RGBColor(0, 90, 181);
pub(crate) const ORANGE: RGBColor = RGBColor(230, 130, 20);
pub(crate) const GREY: RGBColor = RGBColor(150, 150, 150);

const WIDTH: u32 = 860;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Bars one beside the other for many places, such as events.
pub(crate) fn beside(title: &str, x: &str, y: &str, series: &[Series]) -> String {
    drawn(320, |area| {
        let places = series.iter().map(|one| one.values.len()).max().unwrap_or(0);
        let mut chart = ChartBuilder::on(area)
            .caption(title, ("sans-serif", 17))
            .margin(8)
            .x_label_area_size(36)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..length(places), 0.0..most(series))?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_desc(x)
            .y_desc(y)
            .x_label_formatter(&|at| format!("{at:.0}"))
            .y_label_formatter(&|at| format!("{at:.0}"))
            .draw()?;
        let width = 0.8 / length(series.len());
        for (n, one) in series.iter().enumerate() {
            let colour = one.colour;
            let bars = one.values.iter().enumerate().map(|(at, value)| {
                let left = length(at) + 0.1 + width * length(n);
                Rectangle::new([(left, 0.0), (left + width, *value)], colour.filled())
            });
            chart
                .draw_series(bars)?
                .label(one.name)
                .legend(move |(x, y)| {
                    Rectangle::new([(x, y - 5), (x + 12, y + 5)], colour.filled())
                });
        }
        legend(&mut chart)
    })
}

/// Bars of shares for a few named rows, each series behind the one before.
pub(crate) fn stacked(title: &str, x: &str, rows: &[String], series: &[Series]) -> String {
    let height = 110 + 34 * u32::try_from(rows.len()).unwrap_or(20).min(40);
    drawn(height, |area| {
        let ends: Vec<f64> = (0..rows.len())
            .map(|row| series.iter().map(|one| value(one, row)).sum())
            .collect();
        let end = ends.iter().copied().fold(1.0, f64::max);
        let count = rows.len();
        let mut chart = ChartBuilder::on(area)
            .caption(title, ("sans-serif", 17))
            .margin(8)
            .x_label_area_size(36)
            .y_label_area_size(190)
            .build_cartesian_2d(0.0..end * 1.35, 0.0..length(count))?;
        let name = |at: &f64| {
            // Rows run from top to bottom, the axis from bottom to top.
            let middle = (at - at.floor() - 0.5).abs() < 0.01;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a place on a short axis"
            )]
            let row = count.checked_sub(at.floor() as usize + 1);
            row.filter(|_| middle)
                .and_then(|row| rows.get(row))
                .cloned()
                .unwrap_or_default()
        };
        chart
            .configure_mesh()
            .disable_y_mesh()
            .x_desc(x)
            .y_labels(2 * count + 1)
            .y_label_formatter(&name)
            .x_label_formatter(&|at| format!("{at:.0}"))
            .draw()?;
        let mut from = vec![0.0; count];
        for one in series {
            let colour = one.colour;
            let bars: Vec<_> = (0..count)
                .map(|row| {
                    let below = length(count - row - 1);
                    let left = from[row];
                    from[row] += value(one, row);
                    Rectangle::new(
                        [(left, below + 0.2), (from[row], below + 0.8)],
                        colour.filled(),
                    )
                })
                .collect();
            chart
                .draw_series(bars)?
                .label(one.name)
                .legend(move |(x, y)| {
                    Rectangle::new([(x, y - 5), (x + 12, y + 5)], colour.filled())
                });
        }
        legend(&mut chart)
    })
}

type Chart<'a, 'b> = ChartContext<
    'a,
    SVGBackend<'b>,
    Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
>;
type Fault<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;

fn legend<'a, 'b: 'a>(chart: &mut Chart<'a, 'b>) -> Result<(), Fault<'b>> {
    chart
        .configure_series_labels()
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.2))
        .position(SeriesLabelPosition::UpperRight)
        .draw()
}

fn drawn(height: u32, draw: impl for<'a, 'b> Fn(&'b Area<'a>) -> Result<(), Fault<'a>>) -> String {
    let mut out = String::new();
    let outcome = {
        let area = SVGBackend::with_string(&mut out, (WIDTH, height)).into_drawing_area();
        area.fill(&WHITE)
            .and_then(|()| draw(&area))
            .and_then(|()| area.present())
            .map_err(|error| error.to_string())
    };
    match outcome {
        Ok(()) => out,
        // A picture that can't be drawn must not take the tables with it.
        Err(error) => format!("<!-- not drawn: {} -->", error.replace("--", "- -")),
    }
}

fn value(series: &Series, at: usize) -> f64 {
    series.values.get(at).copied().unwrap_or(0.0)
}

fn most(series: &[Series]) -> f64 {
    series
        .iter()
        .flat_map(|one| &one.values)
        .copied()
        .fold(1.0, f64::max)
        * 1.3
}

#[expect(clippy::cast_precision_loss, reason = "a few hundred places at most")]
fn length(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(name: &'static str, values: &[f64]) -> Series {
        Series {
            name,
            colour: BLUE,
            values: values.to_vec(),
        }
    }

    #[test]
    fn a_plot_holds_a_bar_for_every_value_and_names_its_series() {
        let svg = beside(
            "Calls",
            "event",
            "calls",
            &[
                series("incremental", &[3.0, 2.0]),
                series("full", &[16.0, 15.0]),
            ],
        );
        assert!(
            svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"),
            "{svg}"
        );
        assert!(svg.contains("incremental") && svg.contains("full"), "{svg}");
        let rows = ["a/model".to_owned(), "b/model".to_owned()];
        let svg = stacked(
            "Status",
            "roots",
            &rows,
            &[series("VALID", &[1.0, 0.0]), series("INVALID", &[2.0, 3.0])],
        );
        assert!(svg.contains("a/model") && svg.contains("b/model"), "{svg}");
    }

    #[test]
    fn a_plot_of_nothing_is_drawn_too() {
        assert!(beside("Calls", "event", "calls", &[series("full", &[])]).starts_with("<svg"));
    }
}

//! Two plots as inline SVG: lines, and shares stacked to a whole.
//!
//! The one idea: colours are classes (`c0`, `c1`, …) that the page's style fills for light and dark, and the drawing is as wide as a phone, so that its letters
//! stay legible where it is not enlarged.

use std::fmt::Write;

use super::table::number;

/// Size of the drawing and of the room around the plot, in units of the view box.
const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 200.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = 8.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 34.0;

/// Colours that the page has; later series begin again.
pub(super) const COLOURS: usize = 9;

/// One line of a plot.
pub(super) struct Line {
    /// Which colour.
    pub(super) colour: usize,
    /// `bold`, `dashed` or nothing.
    pub(super) style: &'static str,
    /// Shown on pointing at it.
    pub(super) title: String,
    /// Points by ascending x; none interrupts the line.
    pub(super) points: Vec<Option<(f64, f64)>>,
}

/// What an axis shows.
pub(super) struct Axis<'a> {
    /// Its name with its unit.
    pub(super) name: &'a str,
    /// Whether it is logarithmic.
    pub(super) logarithmic: bool,
}

/// Lines over two axes.
pub(super) fn lines(label: &str, x: &Axis<'_>, y: &Axis<'_>, series: &[Line]) -> String {
    let points = || series.iter().flat_map(|line| &line.points).flatten();
    let across = Scale::over(points().map(|point| point.0), x.logarithmic, LEFT, WIDTH - RIGHT);
    let upward = Scale::over(points().map(|point| point.1), y.logarithmic, HEIGHT - BOTTOM, TOP);
    let mut svg = opened(label);
    axes(&mut svg, x, &across, y, &upward);
    for line in series {
        let mut path = String::new();
        let mut down = false;
        for point in &line.points {
            if let Some((x, y)) = point {
                let verb = if down { 'L' } else { 'M' };
                let _ = write!(path, "{verb}{:.1} {:.1}", across.place(*x), upward.place(*y));
            }
            down = point.is_some();
        }
        let _ = write!(
            svg,
            "<path class=\"line c{} {}\" d=\"{path}\"><title>{}</title></path>",
            line.colour % COLOURS,
            line.style,
            escaped(&line.title)
        );
    }
    svg.push_str("</svg>");
    svg
}

/// Shares of a whole over time: for each series a value per bin, stacked from the bottom in their order.
pub(super) fn stacked(label: &str, bin_s: f64, series: &[(usize, String, Vec<f64>)]) -> String {
    let bins = series.iter().map(|(_, _, values)| values.len()).max().unwrap_or(0);
    let across = Scale::over([0.0, bin_s * bins as f64].into_iter(), false, LEFT, WIDTH - RIGHT);
    let upward = Scale { low: 0.0, high: 1.0, logarithmic: false, from: HEIGHT - BOTTOM, to: TOP };
    let mut svg = opened(label);
    let x = Axis { name: "virtual seconds", logarithmic: false };
    axes(&mut svg, &x, &across, &Axis { name: "share of bytes", logarithmic: false }, &upward);
    let value = |values: &[f64], bin: usize| values.get(bin).copied().unwrap_or(0.0);
    let whole = |bin: usize| series.iter().map(|(_, _, values)| value(values, bin)).sum::<f64>();
    let mut below = vec![0.0; bins];
    for (colour, title, values) in series {
        let mut path = String::new();
        for (bin, below) in below.iter_mut().enumerate() {
            let share = if whole(bin) > 0.0 { value(values, bin) / whole(bin) } else { 0.0 };
            if share > 0.0 {
                let (left, right) = (across.place(bin as f64 * bin_s), across.place((bin + 1) as f64 * bin_s));
                let (low, high) = (upward.place(*below), upward.place(*below + share));
                let _ = write!(path, "M{left:.1} {low:.1}H{right:.1}V{high:.1}H{left:.1}Z");
            }
            *below += share;
        }
        let _ = write!(
            svg,
            "<path class=\"area c{}\" d=\"{path}\"><title>{}</title></path>",
            colour % COLOURS,
            escaped(title)
        );
    }
    svg.push_str("</svg>");
    svg
}

/// Text without a meaning of its own in HTML.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

fn opened(label: &str) -> String {
    format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">", escaped(label))
}

/// From values to places.
struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
    from: f64,
    to: f64,
}

impl Scale {
    fn over(values: impl Iterator<Item = f64>, logarithmic: bool, from: f64, to: f64) -> Scale {
        let usable = values.filter(|value| value.is_finite() && (!logarithmic || *value > 0.0));
        let (low, high) =
            usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = match (low <= high, logarithmic) {
            (false, _) => (1.0, 10.0),
            // Alike values get room around them.
            (true, true) if high < low * 1.2 => (low / 1.5, high * 1.5),
            (true, true) => (low, high),
            (true, false) if high <= low => (0.0f64.min(low), low.max(0.0) + 1.0),
            (true, false) => (0.0f64.min(low), high),
        };
        Scale { low, high, logarithmic, from, to }
    }

    fn place(&self, value: f64) -> f64 {
        let part = match self.logarithmic {
            true => (value.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        self.from + part.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Three to six round values.
    fn ticks(&self) -> Vec<f64> {
        if self.logarithmic {
            let decades = (self.high / self.low).log10();
            let steps: &[f64] = if decades > 3.0 {
                &[1.0]
            } else if decades > 1.2 {
                &[1.0, 3.0]
            } else {
                &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0]
            };
            let first = self.low.log10().floor() as i32;
            let last = self.high.log10().ceil() as i32;
            let stride = (1 + (last - first) / 6).max(1);
            return (first..=last)
                .step_by(stride as usize)
                .flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade)))
                .filter(|tick| *tick >= self.low * 0.999 && *tick <= self.high * 1.001)
                .collect();
        }
        let rough = (self.high - self.low) / 4.0;
        let unit = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|step| step * unit).find(|step| *step >= rough * 0.999);
        let step = step.unwrap_or(unit * 10.0);
        let first = (self.low / step).ceil() as i64;
        (first..first + 12).map(|n| n as f64 * step).take_while(|tick| *tick <= self.high * 1.001).collect()
    }
}

fn axes(svg: &mut String, x: &Axis<'_>, across: &Scale, y: &Axis<'_>, upward: &Scale) {
    let floor = HEIGHT - BOTTOM;
    for tick in upward.ticks() {
        let at = upward.place(tick);
        let _ = write!(svg, "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{}\"/>", WIDTH - RIGHT);
        let _ = write!(svg, "<text x=\"{}\" y=\"{:.1}\" class=\"end\">{}</text>", LEFT - 4.0, at + 3.5, short(tick));
    }
    for tick in across.ticks() {
        let at = across.place(tick);
        let _ = write!(svg, "<path class=\"grid\" d=\"M{at:.1} {TOP}V{floor}\"/>");
        let _ = write!(svg, "<text x=\"{at:.1}\" y=\"{}\" class=\"middle\">{}</text>", floor + 13.0, short(tick));
    }
    let middle = (LEFT + WIDTH - RIGHT) / 2.0;
    let _ = write!(svg, "<text x=\"{middle}\" y=\"{}\" class=\"middle\">{}</text>", HEIGHT - 5.0, escaped(x.name));
    let centre = (TOP + floor) / 2.0;
    let _ = write!(
        svg,
        "<text x=\"9\" y=\"{centre}\" class=\"middle\" transform=\"rotate(-90 9 {centre})\">{}</text>",
        escaped(y.name)
    );
}

/// A tick's label: `20M`, `1.5k`, `0.3`.
fn short(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        large if large >= 1e9 => (value / 1e9, "G"),
        large if large >= 1e6 => (value / 1e6, "M"),
        large if large >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let digits = if scaled.abs() >= 1.0 || scaled == 0.0 { format!("{scaled:.2}") } else { number(Some(scaled)) };
    format!("{}{unit}", digits.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_become_markup() {
        assert_eq!(escaped("<b a=\"1\">&'"), "&lt;b a=&quot;1&quot;&gt;&amp;&#39;");
    }

    #[test]
    fn ticks_are_few_round_and_inside() {
        for (values, logarithmic) in
            [([0.0, 7.3], false), ([0.02, 400.0], true), ([3.0, 3.0], true), ([1.0, 1e9], true)]
        {
            let scale = Scale::over(values.into_iter(), logarithmic, 0.0, 1.0);
            let ticks = scale.ticks();
            assert!((1..=12).contains(&ticks.len()), "{values:?}: {ticks:?}");
            assert!(ticks.iter().all(|tick| (0.0..=1.0).contains(&scale.place(*tick))));
        }
    }

    #[test]
    fn a_plot_of_nothing_is_still_a_plot() {
        let axis = || Axis { name: "s", logarithmic: true };
        assert!(lines("nothing", &axis(), &axis(), &[]).ends_with("</svg>"));
        assert!(stacked("nothing", 1.0, &[]).ends_with("</svg>"));
    }

    #[test]
    fn labels_of_ticks_are_short() {
        let shown = [0.0, 0.3, 15.0, 1500.0, 20_000.0, 2.5e6].map(short);
        assert_eq!(shown, ["0", "0.3", "15", "1500", "20k", "2.5M"]);
    }
}

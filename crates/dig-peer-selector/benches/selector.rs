//! Criterion measurements of the selector's three hot calls, ours beside the published crate.
//!
//! For watching one side over time; `ratios` answers whether the targets hold. What is measured per
//! call leaves out the settling of selections, which both sides need and no host does at once.

mod subject;

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput};
use subject::{ours, theirs};

const COUNTS: [usize; 4] = [10, 100, 1000, 4000];

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(30)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    select(&mut criterion);
    record(&mut criterion);
    insert(&mut criterion);
    criterion.final_summary();
}

/// Writes the `iter_custom` body that sums only the time inside `select`.
macro_rules! time_selects {
    ($warm:expr) => {
        |bencher, &count| {
            let mut warm = $warm(count);
            bencher.iter_custom(|calls| {
                let mut total = Duration::ZERO;
                let mut done = 0;
                while done < calls {
                    // A selection that panicked has no time of its own and is asked again.
                    if let Some(elapsed) = warm.select() {
                        total += elapsed;
                        done += 1;
                    }
                }
                total
            });
        }
    };
}

fn select(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("select");
    for count in COUNTS {
        group.throughput(Throughput::Elements(count as u64));
        group.bench_with_input(BenchmarkId::new("ours", count), &count, time_selects!(ours::Warm::new));
        group.bench_with_input(BenchmarkId::new("published", count), &count, time_selects!(theirs::Warm::new));
    }
    group.finish();
}

fn record(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("record_outcome");
    for count in COUNTS {
        group.bench_with_input(BenchmarkId::new("ours", count), &count, |bencher, &count| {
            let mut warm = ours::Warm::new(count);
            bencher.iter_custom(|calls| warm.record(calls as usize));
        });
        group.bench_with_input(BenchmarkId::new("published", count), &count, |bencher, &count| {
            let mut warm = theirs::Warm::new(count);
            bencher.iter_custom(|calls| warm.record(calls as usize));
        });
    }
    group.finish();
}

fn insert(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("insert_at_capacity");
    for capacity in [4096, 65_536] {
        group.bench_with_input(BenchmarkId::new("ours", capacity), &capacity, |bencher, &capacity| {
            let mut full = ours::Full::new(capacity);
            bencher.iter_custom(|calls| full.insert(calls as usize));
        });
    }
    group.bench_with_input(BenchmarkId::new("published", 4096), &4096, |bencher, &capacity| {
        let mut full = theirs::Full::new(capacity);
        bencher.iter_custom(|calls| full.insert(calls as usize));
    });
    group.finish();
}

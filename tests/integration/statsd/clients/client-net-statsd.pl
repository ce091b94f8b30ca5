use strict;
use warnings;
use Net::Statsd;
use Time::HiRes 'usleep';

$Net::Statsd::HOST = '127.0.0.1';
$Net::Statsd::PORT = $ARGV[0];
my $n = 2000;
for my $i (1 .. $n) {
	Net::Statsd::increment('perl.one');
	Net::Statsd::update_stats(['perl.two', 'perl.three'], 2);
	usleep(1000) if $i % 20 == 0;
}
Net::Statsd::gauge('perl.gauge' => 5);
Net::Statsd::increment('deploys.perl');
Net::Statsd::decrement('deploys.perl') for 1 .. 3;
print "perl/one $n\n";
print "perl/two ", 2 * $n, "\n";
print "perl/three ", 2 * $n, "\n";
print "deploys/perl -2\n";

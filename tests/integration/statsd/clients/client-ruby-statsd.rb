require 'statsd'

n = 2000
client = Statsd.new('127.0.0.1', ARGV[0].to_i)
client.namespace = 'ruby'
n.times do |i|
  client.increment('one')
  client.count('three', 3)
  sleep 0.001 if i % 20 == 0
end
client.batch { |batch| 100.times { batch.increment('batched') } }
client.timing('time', 3)
puts "ruby/one #{n}"
puts "ruby/three #{3 * n}"
puts 'ruby/batched 100'

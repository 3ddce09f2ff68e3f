"""What fio 2 and fio 3 print for people, by hand after their source."""

from __future__ import annotations

COMMAND = (
    "azureuser@vm1:~$ sudo fio --name=writer --filename=/dev/sdc --rw=randwrite --bs=8k --direct=1 \\\n"
    "    --ioengine=libaio --iodepth=64 --numjobs=4 --runtime=30 --group_reporting | tee out.txt\n"
)
JOB_FILE = """azureuser@vm1:~$ cat writer.fio
[global]
ioengine=libaio
direct=1   ; past the cache
runtime=30

[writer]
rw=randwrite
bs=8k
iodepth=64
numjobs=4
filename=/dev/sdc
azureuser@vm1:~$ sudo fio writer.fio
"""
START_2 = "writer: (g=0): rw=randwrite, bs=8K-8K/8K-8K/8K-8K, ioengine=libaio, iodepth=64\n...\n"
START_3 = (
    "writer: (g=0): rw=randwrite, bs=(R) 8192B-8192B, (W) 8192B-8192B, (T) 8192B-8192B, ioengine=libaio, "
    "iodepth=64\n...\n"
)
PROGRESS = "Jobs: 4 (f=4): [wwww] [{}% done] [0KB/39936KB/0KB /s] [0/4992/0 iops] [eta 00m:29s]"
REPORT_2 = """writer: (groupid=0, jobs=4): err= 0: pid=2311: Tue Sep 20 22:00:38 2016
  write: io=1172.6MB, bw=39991KB/s, iops=4998, runt= 30025msec
    slat (usec): min=3, max=1234.5K, avg= 7.63, stdev= 5.14
    clat (msec): min=2, max=190, avg=51.20, stdev= 5.13
     lat (msec): min=2, max=190, avg=51.21, stdev= 5.13
    clat percentiles (msec):
     |  1.00th=[   44],  5.00th=[   45], 10.00th=[   46], 20.00th=[   47],
     | 30.00th=[   48], 50.00th=[   51], 99.00th=[   77], 99.90th=[  140],
     | 99.99th=[  180]
    bw (KB  /s): min= 5728, max=65880, per=25.00%, avg=9999.71, stdev=2937.87
    lat (msec) : 2=0.01%, 4=0.02%, 10=0.03%, 20=0.01%, 250=99.93%
  cpu          : usr=4.31%, sys=13.62%, ctx=262146, majf=0, minf=34
  IO depths    : 1=0.0%, 2=0.0%, 4=0.0%, 8=0.0%, 16=0.0%, 32=0.1%, >=64=99.9%
     issued    : total=r=0/w=150087/d=0, short=r=0/w=0/d=0, drop=r=0/w=0/d=0

Run status group 0 (all jobs):
  WRITE: io=1172.6MB, aggrb=39991KB/s, minb=39991KB/s, maxb=39991KB/s, mint=30025msec, maxt=30025msec

Disk stats (read/write):
  sdc: ios=0/149387, merge=0/4, ticks=14323/2, in_queue=14325, util=97.16%
"""
REPORT_3 = """writer: (groupid=0, jobs=4): err= 0: pid=2311: Tue Sep 20 22:00:38 2022
  write: IOPS=12.0k, BW=101MiB/s (106MB/s)(3044MiB/30003msec); 0 zone resets
    slat (nsec): min=1534, max=1669.5k, avg=5337.32, stdev=13982.92
    clat (usec): min=913, max=45553, avg=19692.16, stdev=159.25
     lat (usec): min=940, max=45556, avg=19697.50, stdev=160.07
    clat percentiles (usec):
     |  1.00th=[ 1249],  5.00th=[10155], 10.00th=[11058], 20.00th=[12063],
     | 50.00th=[19530], 99.00th=[27919], 99.50th=[29300], 99.90th=[35390],
     | 99.99th=[44827]
   bw (  KiB/s): min=70440, max=110440, per=100.00%, avg=103916.00, stdev= 0.00, samples=236
   iops        : min=12610, max=13610, avg=12989.00, stdev= 0.00, samples=236
  lat (usec)   : 1000=0.16%
  lat (msec)   : 2=0.49%, 20=69.35%, 50=30.00%
  cpu          : usr=2.10%, sys=11.05%, ctx=57443, majf=0, minf=11
  IO depths    : 1=0.1%, 2=0.1%, 4=0.1%, 8=0.1%, 16=0.1%, 32=0.1%, >=64=100.0%
     submit    : 0=0.0%, 4=100.0%, 8=0.0%, 16=0.0%, 32=0.0%, 64=0.0%, >=64=0.0%
     issued rwts: total=0,389739,0,0 short=0,0,0,0 dropped=0,0,0,0
     latency   : target=0, window=0, percentile=100.00%, depth=64

Run status group 0 (all jobs):
  WRITE: bw=101MiB/s (106MB/s), 101MiB/s-101MiB/s (106MB/s-106MB/s), io=3044MiB (3192MB), run=30003-30003msec
"""
FIO_2 = COMMAND + START_2 + "fio-2.1.3\nStarting 4 processes\n" + REPORT_2
FIO_3 = COMMAND + START_3 + "fio-3.1\nStarting 4 processes\n" + REPORT_3
